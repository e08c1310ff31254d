"""Bells, of other clients and of the own one."""

from __future__ import annotations

import queue as queues
from collections.abc import Callable

import pytest

from millpond.jobs import Bell, Completion
from millpond.store import Store
from tests.stores import WAIT, Place, drain, job


def heard(store: Store, act: Callable[[], object], expected: Bell) -> None:
    """Acts again until the bell comes: a bell may be missed, and a client that waits asks again."""
    bells: queues.SimpleQueue[Bell] = queues.SimpleQueue()
    stop = store.listen(bells.put)
    try:
        for _ in range(int(WAIT / 0.25)):
            act()
            try:
                while True:
                    bell = bells.get(timeout=0.25)
                    if (bell.kind, bell.queue) == (expected.kind, expected.queue):
                        return
            except queues.Empty:
                continue
        raise AssertionError(f"no bell for {expected}")
    finally:
        stop()


@pytest.mark.parametrize("pusher_is_another", [True, False], ids=["of another client", "of its own"])
def test_work_rings(place: Place, store: Store, pusher_is_another: bool) -> None:
    pusher = place.open() if pusher_is_another else store

    def act() -> None:
        drain(store, "q", "w")
        pusher.push([job()])

    heard(store, act, Bell("work", "q"))
    if pusher_is_another:
        pusher.close()


def test_finished_and_cancelled_ring(place: Place, store: Store) -> None:
    other = place.open()

    def finish() -> None:
        id = store.push([job()])[0].id
        store.outcomes([id])
        drain(other, "q", "w")

    def cancel() -> None:
        id = store.push([job()])[0].id
        assert id in [each.id for each in store.claim("q", "w", 10).jobs]
        other.cancel([id])

    heard(store, finish, Bell("finished", "q"))
    heard(store, cancel, Bell("cancelled", "q"))
    other.close()


def test_room_rings(place: Place, store: Store) -> None:
    other = place.open()
    store.configure("q", capacity=1)

    def act() -> None:
        store.push([job(), job()])
        drain(other, "q", "w")

    heard(store, act, Bell("room", "q"))
    other.close()


def test_a_queue_that_is_removed_rings(place: Place, store: Store) -> None:
    other = place.open()
    for kind in ("room", "finished"):

        def act() -> None:
            store.configure("q", capacity=1)
            pushed = store.push([job(), job()])
            store.outcomes([pushed[0].id])
            other.remove(queue="q", limit=100)

        heard(store, act, Bell(kind, "q"))


def test_what_was_missed_before_listening_rings(place: Place, store: Store) -> None:
    other = place.open()
    id = store.push([job()])[0].id
    assert [each.id for each in store.claim("q", "w", 1).jobs] == [id]
    other.cancel([id])
    heard(store, lambda: None, Bell("cancelled", "q"))
    other.close()
