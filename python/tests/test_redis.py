"""Redis: lost answers, and settings that the server lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError as ConnectionLost

from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import Completion, Extension, JobFilter, JobUpdate, Release, Removed
from millpond.queues import GroupLimits
from millpond.rate import Rate
from millpond.stores.redis import RedisStore
from millpond.stores.redis.connection import script
from tests.stores import drain, job, refuses, server


@pytest.fixture
def redis_store() -> Iterator[RedisStore]:
    opened = RedisStore(server("redis"), f"py-{new_id()[-12:]}")
    yield opened
    opened.close()


def test_the_version_of_the_data_is_checked(redis_store: RedisStore) -> None:
    connection = redis_store._connection
    prefix, version = connection.start[1:-2], f"{connection.start}version"
    redis_store.push([job()])
    assert connection.command("GET", version) == b"2"
    for other in (1, 3):
        connection.command("SET", version, other)
        refuses("StoreVersion", lambda: RedisStore(server("redis"), prefix))


def test_changes(redis_store: RedisStore) -> None:
    store = redis_store
    jobs = [job(group=f"g{number}") for number in range(30)]
    store.push(jobs)
    assert set(store.update([JobUpdate(each.id, priority=9, delay=0) for each in jobs])) == {"updated"}
    assert [each.id for each in store.list("q", "waiting", 30, filter=JobFilter(group="g7")).jobs] == [jobs[7].id]
    records = [each for each in store.find([each.id for each in jobs]) if each]
    assert store.remove(ids=[each.id for each in jobs]) == Removed(30, False)
    assert store.restore(records) == ["restored"] * 30
    assert store.restore(records[:1]) == ["existing"]
    assert {each.priority for each in store.list("q", "waiting", 30).jobs} == {9}
    assert store.remove(queue="q", limit=20) == Removed(20, True)
    assert store.remove(queue="q", limit=20) == Removed(10, False)
    assert store.stats() == [] and store.settings("q") is None


def test_settings_come_back_after_the_server_lost_them(redis_store: RedisStore) -> None:
    store = redis_store
    store.configure("q", lease=4_321)
    client = store._connection.client
    for key in client.scan_iter(f"{store._connection.start}*"):
        client.delete(key)
    store.push([job()])
    assert store.claim("q", "w", 1).lease == 4_321
    for key in client.scan_iter(f"{store._connection.start}*"):
        client.delete(key)
    store.claim("q", "w", 1)
    assert store.claim("q", "w", 1).lease == 4_321


def test_a_repeated_call_answers_as_the_first(redis_store: RedisStore) -> None:
    """As if every first answer were lost."""
    store, connection = redis_store, redis_store._connection
    once = connection._once

    def twice(called: Any, items: Any) -> Any:
        once(called, items)
        return once(called, [items[0], "1", *items[2:]])

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

    def loses(called: Any, items: Any) -> Any:
        answer = once(called, items)
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
    assert [each.attempt for each in got] == [1]


def test_a_script_is_its_text_with_what_it_includes() -> None:
    assert "\n-- @include" not in script("claim").text


def test_groups(redis_store: RedisStore) -> None:
    store = redis_store
    names = [f"g{number:02}" for number in range(12)]
    store.limit_group("q", "g05", GroupLimits(running=3, weight=2))
    store.limit_group("q", "", GroupLimits(running=4, rate=Rate(100, 1_000, burst=10)))
    store.configure("q", group_running=2)
    assert {each.status for each in store.push([job(group=name) for name in [*names, *names, *names, *names]])} == {"pushed"}
    assert {each.status for each in store.push([job() for _ in range(30)])} == {"pushed"}
    claimed = store.claim("q", "w", 200).jobs
    expected = Counter([*names, *names, "g05"])
    assert Counter(each.group or "" for each in claimed) == expected + Counter({"": 4})
    listed = [*store.groups("q", 5), *store.groups("q", 100, after=names[3])]
    assert [each.group for each in listed] == ["", *names]
    assert [(each.waiting, each.running) for each in listed[:2]] == [(26, 4), (2, 2)]
    assert listed[0].limits == GroupLimits(running=4, rate=Rate(100, 1_000, burst=10))
    assert store.groups("q", 9, group="g05")[0].limits == GroupLimits(running=3, weight=2)
    # A pause of a group holds no other; a pause of the queue holds all.
    first, other = [each for each in claimed if each.group == names[0]]
    assert store.release("q", [Release(first.id, first.fence, group=first.group, pause=60_000)]) == ["ok"]
    assert set(store.complete("q", [Completion(each.id, each.fence) for each in claimed if each is not first])) == {"ok"}
    assert not {each.group for each in store.claim("q", "w", 5).jobs} & {names[0]}


def test_a_pause_holds_the_queue(redis_store: RedisStore) -> None:
    store = redis_store
    store.push([job(key=f"k{number}") for number in range(30)])
    claimed = store.claim("q", "w", 1).jobs[0]
    assert store.release("q", [Release(claimed.id, claimed.fence, key=claimed.key, pause=60_000)]) == ["ok"]
    later = store.claim("q", "w", 30)
    assert later.jobs == [] and 0 < (later.retry_after or 0) <= 60_000
