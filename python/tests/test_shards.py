"""Several stores as one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from millpond.encoding import Body
from millpond.errors import MillpondError
from millpond.graphs import push_all
from millpond.schedules import Declaration, Firing, ScheduledJob
from millpond.store import Store
from millpond.stores import open_store
from millpond.stores.shards import MARK, ShardedStore, shard_of
from millpond.stores.sqlite import SqliteStore
from tests.stores import drain, job, refuses
from tests.vectors import load

Q = [next(name for name in (f"queue{n}" for n in range(100)) if shard_of(name, 3) == shard) for shard in range(3)]
"""A queue in each of three shards."""


def urls(folder: Path, count: int = 3) -> list[str]:
    return [f"sqlite:{folder / f'{shard}.db'}" for shard in range(count)]


def test_the_shard_of_a_queue() -> None:
    for case in load("shards")["cases"]:
        for queue, shard in case["shards"].items():
            assert shard_of(queue, case["count"]) == shard, queue


def test_one_store_of_several(tmp_path: Path) -> None:
    store = open_store(urls(tmp_path))
    jobs = [job(queue) for queue in Q]
    assert [each.status for each in store.push(jobs)] == ["pushed"] * 3
    assert [each and each.queue for each in store.find([each.id for each in jobs])] == Q
    assert sorted(each.queue for each in store.stats()) == sorted(Q)
    for queue, each in zip(Q, jobs, strict=True):
        assert drain(store, queue, "w") == [each.id]
    assert store.sweep(100).queues == 3
    alone = open_store(urls(tmp_path)[1])
    assert [each.queue for each in alone.stats()] == [Q[1]]
    alone.close()
    store.close()
    refuses("Closed", lambda: store.find(["x"]))


def test_what_belongs_together_is_in_one_store(tmp_path: Path) -> None:
    store = open_store(urls(tmp_path))
    parent = job(Q[0])
    store.push([parent])
    refuses("AcrossShards", lambda: push_all(store, [job(Q[0]), job(Q[1])]))
    outcome = store.push([job(Q[1], after=[parent.id])])[0]
    assert outcome.error is not None and outcome.error.code == "AcrossShards"
    assert store.push([job(Q[0], after=[parent.id])])[0].status == "pushed"
    store.close()


def test_other_stores_are_refused(tmp_path: Path) -> None:
    first, second, third = urls(tmp_path)
    open_store([first, second]).close()
    for wrong in ([second, first], [first, second, third]):
        refuses("ShardMismatch", lambda wrong=wrong: open_store(wrong))  # type: ignore[misc]
    refuses("InvalidOption", lambda: open_store([first, "redis://x"]))
    open_store([first, second]).close()


def test_schedules(tmp_path: Path) -> None:
    store = open_store(urls(tmp_path))

    def declaration(queue: str, version: str) -> Declaration:
        return Declaration(name="s", version=version, when="every 1s", job=ScheduledJob(queue=queue, data=Body("json", "1")))

    assert store.declare([declaration(Q[0], "1")]) == ["created"]
    assert store.declare([declaration(Q[2], "2")]) == ["created"]
    assert [(each.name, each.job.queue) for each in store.schedules(10)] == [("s", Q[2])]
    due = store.sweep(10).schedules
    assert due is not None
    [record] = due.due
    assert record.next_at is not None
    later = record.next_at + 1000
    assert store.fire([Firing(name="s", version="2", expected=record.next_at, next=later)])[0].status == "fired"
    firing = Firing(name="s", version="2", expected=later, next=None, jobs=[job(Q[2])])
    assert store.fire([firing])[0].status == "fired"
    assert not store.remove_schedule(MARK)
    assert store.remove_schedule("s")
    store.close()


def test_one_that_is_away_harms_only_its_queues(tmp_path: Path) -> None:
    away = {1}

    def opener(shard: int) -> Callable[[], Store]:
        def open_it() -> Store:
            if shard in away:
                raise MillpondError("StoreUnavailable", "no answer")
            return SqliteStore(str(tmp_path / f"{shard}.db"))

        return open_it

    store = ShardedStore([opener(shard) for shard in range(3)])
    here, gone = job(Q[0]), job(Q[1])
    assert [each.status for each in store.push([here, gone])] == ["pushed", "failed"]
    assert store.find([here.id])[0] is not None
    refuses("StoreUnavailable", lambda: store.find([here.id, gone.id]))
    refuses("StoreUnavailable", store.stats)
    assert store.sweep(10).queues == 1
    rung = threading.Event()
    stop = store.listen(lambda bell: rung.set() if bell.queue == Q[1] else None)
    away.clear()
    assert store.push([gone])[0].status == "pushed"
    assert store.find([gone.id])[0] is not None
    while not rung.wait(0.05):
        store.push([job(Q[1])])
    stop()
    assert len(store.stats()) == 2
    store.close()
    away.update(range(3))
    with pytest.raises(MillpondError, match="shard 1 of 3"):
        ShardedStore([opener(shard) for shard in range(3)])


