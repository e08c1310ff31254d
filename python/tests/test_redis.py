"""Partitions of Redis, lost answers, and settings that the server lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import ConnectionError as ConnectionLost

from millpond.contract import DEFAULTS
from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import Completion, Extension, JobFilter, JobUpdate, Release, Removed
from millpond.queues import GroupLimits
from millpond.rate import Rate
from millpond.schedules import Declaration, Firing, ScheduledJob
from millpond.stores.redis import RedisStore
from millpond.stores.redis.connection import script
from millpond.stores.redis.routing import Part, shared_key
from tests.stores import Clock, drain, job, refuses, server


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
    cursor = None
    while True:
        page = store.list("q", "waiting", 7, cursor)
        listed += [each.id for each in page.jobs]
        cursor = page.next
        if cursor is None:
            break
    assert sorted(listed) == sorted(each.id for each in jobs)
    claimed = store.claim("q", "w", 60).jobs
    assert len(claimed) == 60
    # Without the keys: the partition does not follow from the id alone.
    assert set(store.extend("q", [Extension(each.id, each.fence) for each in claimed])) == {"ok"}
    assert set(store.complete("q", [Completion(each.id, each.fence) for each in claimed[:30]])) == {"ok"}
    assert store.complete("q", [Completion(claimed[0].id, claimed[0].fence)]) == ["stale"]
    assert set(store.cancel([each.id for each in claimed])) == {"done", "cancelled"}
    assert store.requeue(ids=[each.id for each in claimed]).requeued == 30
    assert len(drain(store, "q", "w")) == 30
    assert store.stats("q")[0].counts["done"] == 60


def test_the_version_of_the_data_is_checked(redis_store: RedisStore) -> None:
    registry = redis_store._registry
    version = shared_key(registry.prefix, "version")
    redis_store.push([job()])
    assert registry.connection.command("GET", version) == b"1"
    registry.connection.command("SET", version, 2)
    refuses("StoreVersion", lambda: RedisStore(server("redis"), registry.prefix))
    refuses("StoreVersion", lambda: redis_store.push([job(queue="new")]))
    assert len(redis_store.claim("q", "w", 1).jobs) == 1


def test_changes_over_partitions(redis_store: RedisStore) -> None:
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
    assert [each.attempt for each in got] == [1]


def test_a_graph_over_a_queue_that_was_split_anew(redis_store: RedisStore) -> None:
    other = RedisStore(server("redis"), redis_store._registry.prefix, partitions=1)
    other.push([job("p"), job("c")])
    while other.remove(queue="c", limit=100).more:
        pass
    other._registry.known["c"] = 1
    redis_store.push([job("c")])
    parent = job("p")
    children = [job("c", after=[parent.id]) for _ in range(8)]
    refuses("StoreFailed", lambda: other.push([parent, *children]))
    assert {each.status for each in other.push([parent, *children])} == {"pushed"}
    assert parent.id in drain(other, "p", "w")
    assert {each.id for each in children} <= set(drain(other, "c", "w"))
    other.close()


def test_a_parent_whose_client_died(redis_store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = redis_store
    parent = job("p")

    def dies(*_: Any) -> bool:
        raise MillpondError("StoreUnavailable", "gone")

    with monkeypatch.context() as patch:
        patch.setattr(store._links, "decide", dies)
        refuses("StoreUnavailable", lambda: store.push([parent, job("r", after=[parent.id])]))
    for queue in ("c", "p"):
        assert [each.status for each in store.push([job(queue, after=[parent.id])])] == ["orphan"]


def test_a_firing_meets_the_key_of_a_job_whose_client_died(redis_store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = redis_store

    def dies(*_: Any) -> bool:
        raise MillpondError("StoreUnavailable", "gone")

    with monkeypatch.context() as patch:
        patch.setattr(store._links, "decide", dies)
        refuses("StoreUnavailable", lambda: store.push([job(key="k"), job("r")], whole=True))
    fired = job(key="k")
    store.declare([Declaration(name="s", version="1", when="@daily", job=ScheduledJob(queue="q", data=fired.data, key="k"))])
    (schedule,) = store.schedules(1)
    assert schedule.next_at is not None
    firing = Firing(name="s", version="1", expected=schedule.next_at, next=None, jobs=[fired])
    assert [[each.status for each in answer.jobs or ()] for answer in store.fire([firing])] == [["pushed"]]
    assert drain(store, "q", "w") == [fired.id]


def test_a_script_is_its_text_with_what_it_includes() -> None:
    assert "\n-- @include" not in script("claim").text
    assert script("due").keys == ("@due", "@ends")


def test_partitions_share_limits(redis_store: RedisStore) -> None:
    store = redis_store
    refuses("InvalidOption", lambda: store.configure("q", running=2))
    refuses("InvalidOption", lambda: store.configure("q", rate=Rate(10, 1_000)))
    refuses("InvalidOption", lambda: store.limit_group("q", "", GroupLimits(running=2)))
    rate = Rate(2, 86_400_000, burst=7)
    store.configure("q", running=8, rate=rate, group_running=1)
    store.push([job() for _ in range(30)])
    assert sum(len(store.claim("q", "w", 3).jobs) for _ in range(9)) == 7
    [stats] = store.stats("q")
    assert stats.limits and (stats.limits.running, stats.limits.rate, stats.limits.grouped) == (8, rate, True)
    assert stats.limits.group_running == 1 and (stats.next_start or 0) > 0


def test_a_group_is_in_one_partition(redis_store: RedisStore) -> None:
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


def test_a_group_and_a_key_may_be_in_two_partitions(redis_store: RedisStore) -> None:
    pushed = redis_store.push([job(key="k", group="g"), job(group="g"), job(key="k")])
    assert [each.status for each in pushed] == ["failed", "pushed", "pushed"]
    assert pushed[0].error and pushed[0].error.code == "NotSupported"


def test_a_pause_holds_all_partitions(redis_store: RedisStore) -> None:
    store = redis_store
    store.push([job(key=f"k{number}") for number in range(30)])
    claimed = store.claim("q", "w", 1).jobs[0]
    assert store.release("q", [Release(claimed.id, claimed.fence, key=claimed.key, pause=60_000)]) == ["ok"]
    later = store.claim("q", "w", 30)
    assert later.jobs == [] and 0 < (later.retry_after or 0) <= 60_000


def test_what_a_sweep_has_done_is_told_though_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    clock.now = 1_000_000
    store = RedisStore(server("redis"), f"py-{new_id()[-12:]}", clock=clock)
    store.push([job()])
    [claimed] = store.claim("q", "w", 1, lease=1_000).jobs
    clock.now += 2_000
    on_keys = store._registry.on_keys

    def fails(name: str, arguments: Any) -> Any:
        if name == "due-schedules":
            raise MillpondError("StoreUnavailable", "gone")
        return on_keys(name, arguments)

    monkeypatch.setattr(store._registry, "on_keys", fails)
    assert [each.id for each in store.sweep(10).lost] == [claimed.id]
    refuses("StoreUnavailable", lambda: store.sweep(10))
    store.close()


@pytest.mark.parametrize("decided", [True, False])
def test_a_graph_whose_decision_was_not_answered_starts_whole_or_not_at_all(decided: bool) -> None:
    clock = Clock()
    clock.now = 1_000_000
    store = RedisStore(server("redis"), f"py-{new_id()[-12:]}", clock=clock)
    links, decide, finish_in = store._links, store._links.decide, store._links.finish_in
    parents = [job("p"), job("q")]
    jobs = [*parents, job("c", after=[each.id for each in parents])]

    def unanswered(graph: bytes, home: str, wish: str) -> bool:
        if decided:
            decide(graph, home, wish)
        raise MillpondError("StoreUnavailable", "gone")

    def away(part: Part, graph: bytes, is_committed: bool) -> None:
        # The partition that decides does not answer from then on.
        if part.queue == "p":
            raise MillpondError("StoreUnavailable", "gone")
        finish_in(part, graph, is_committed)

    links.decide, links.finish_in = unanswered, away  # type: ignore[method-assign]  # the connection is what fails here
    refuses("StoreUnavailable", lambda: store.push(jobs, whole=True))
    links.decide, links.finish_in = decide, finish_in  # type: ignore[method-assign]
    clock.now += DEFAULTS["graph"]["decide"] + 1
    while store.sweep(100).more:
        pass
    states = [each and each.state for each in store.find([each.id for each in jobs])]
    assert states == (["waiting", "waiting", "blocked"] if decided else [None, None, None])
    store.close()
