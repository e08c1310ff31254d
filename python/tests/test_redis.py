"""Partitions of Redis, lost answers, and settings that the server lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError as ConnectionLost

from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import Completion, Extension, Release
from millpond.rate import Rate
from millpond.stores.redis import RedisStore
from millpond.stores.redis.connection import script
from tests.stores import drain, job, refuses, server


@pytest.fixture
def redis_store() -> Iterator[RedisStore]:
    opened = RedisStore(server("redis"), f"py-{new_id()[-12:]}", partitions=3)
    yield opened
    opened.close()


def test_partitions(redis_store: RedisStore) -> None:
    store = redis_store
    store.configure("q", capacity=100)
    jobs = [job(key=f"k{number}" if number % 2 else None, delay=number // 30) for number in range(60)]
    assert {each.status for each in store.push(jobs)} == {"pushed"}
    store.sweep(100)
    assert store.stats("q")[0].capacity == 100 and store.stats("q")[0].counts["waiting"] >= 30
    listed: list[str] = []
    while page := store.list("q", "waiting", 7, listed[-1] if listed else None):
        listed += [each.id for each in page]
    assert sorted(listed) == sorted(each.id for each in jobs)
    claimed = store.claim("q", "w", 60).jobs
    assert len(claimed) == 60
    # Without the keys: the partition does not follow from the id alone.
    assert set(store.extend("q", [Extension(each.id, each.fence) for each in claimed])) == {"ok"}
    assert set(store.complete("q", [Completion(each.id, each.fence) for each in claimed[:30]])) == {"ok"}
    assert store.complete("q", [Completion(claimed[0].id, claimed[0].fence)]) == ["stale"]
    assert set(store.cancel([each.id for each in claimed])) == {"done", "cancelled"}
    assert store.requeue_ids([each.id for each in claimed]) == 30
    assert len(drain(store, "q", "w")) == 30
    assert store.stats("q")[0].counts["done"] == 60


def test_partitions_that_another_client_has_chosen(redis_store: RedisStore) -> None:
    redis_store.push([job()])
    other = RedisStore(server("redis"), redis_store._registry.prefix, partitions=1)
    other.push([job() for _ in range(9)])
    assert len(drain(other, "q", "w")) == 10
    other.close()


def test_settings_come_back_after_the_server_lost_them(redis_store: RedisStore) -> None:
    store = redis_store
    store.configure("q", lease=4_321)
    client = store._connection.client
    for key in client.scan_iter(f"*{store._registry.prefix}*"):
        client.delete(key)
    store.push([job()])
    assert store.claim("q", "w", 1).lease == 4_321
    for key in client.scan_iter(f"*{store._registry.prefix}*"):
        client.delete(key)
    store.claim("q", "w", 1)
    assert store.claim("q", "w", 1).lease == 4_321


def test_a_repeated_call_answers_as_the_first(redis_store: RedisStore) -> None:
    """As if every first answer were lost."""
    store, connection = redis_store, redis_store._connection
    once = connection._once

    def twice(called: Any, keys: Any, items: Any) -> Any:
        once(called, keys, items)
        return once(called, keys, [items[0], "1", *items[2:]] if called.keys and called.name not in ("due", "register", "unregister") else items)

    jobs = [job(key=f"k{number}") for number in range(10)]
    store.push([job()])
    drain(store, "q", "w")
    connection._once = twice  # type: ignore[method-assign]  # the connection is what fails here
    assert [each.status for each in store.push(jobs)] == ["pushed"] * 10
    claimed = store.claim("q", "w", 10).jobs
    assert len(claimed) == 10
    assert set(store.complete("q", [Completion(each.id, each.fence, key=each.key) for each in claimed[:4]])) == {"ok"}
    assert set(store.release("q", [Release(each.id, each.fence, key=each.key) for each in claimed[4:]])) == {"ok"}


def test_a_lost_claim_gives_its_jobs_back(redis_store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store, connection = redis_store, redis_store._connection
    store.push([job(key="k")])
    once, lost = connection._once, threading.Event()

    def loses(called: Any, keys: Any, items: Any) -> Any:
        answer = once(called, keys, items)
        if called.name == "claim" and len(answer) > 5 and not lost.is_set():
            lost.set()
            raise ConnectionLost("gone")
        return answer

    monkeypatch.setattr("millpond.stores.redis.connection.CALL_TIMEOUT", -1.0)
    connection._once = loses  # type: ignore[method-assign]  # the connection is what fails here
    got = []
    for _ in range(6):
        try:
            got += store.claim("q", "w", 1).jobs
        except MillpondError as error:
            assert error.code == "StoreUnavailable"
    assert lost.is_set()
    assert [(each.attempt, each.fence) for each in got] == [(1, 2)]


def test_a_script_is_its_text_with_what_it_includes() -> None:
    assert "\n-- @include" not in script("claim").text
    assert script("due").keys == ("@due", "@ends")


def test_limits_need_a_single_partition(redis_store: RedisStore) -> None:
    refuses("NotSupported", lambda: redis_store.configure("q", running=2))
    refuses("NotSupported", lambda: redis_store.configure("q", group_rate=Rate(1, 1_000)))
    refuses("NotSupported", lambda: redis_store.limit_group("q", "g", None))
    redis_store.configure("q", running=None)


def test_a_pause_holds_all_partitions(redis_store: RedisStore) -> None:
    store = redis_store
    store.push([job(key=f"k{number}") for number in range(30)])
    claimed = store.claim("q", "w", 1).jobs[0]
    assert store.release("q", [Release(claimed.id, claimed.fence, key=claimed.key, pause=60_000)]) == ["ok"]
    later = store.claim("q", "w", 30)
    assert later.jobs == [] and 0 < (later.retry_after or 0) <= 60_000
