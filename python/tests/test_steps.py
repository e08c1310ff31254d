"""Journals and parks: bounds, pages, bells. Their vectors: test_lifecycle.py."""

from __future__ import annotations

from typing import Any

import pytest

from millpond.encoding import Body
from millpond.jobs import Bell, ClaimedJob, Completion, JournalItem, Record, Release
from millpond.steps import MOST_BYTES, MOST_ENTRIES, PAGE, EntriesFrom, Entry, NewEntry, Park, Signal
from millpond.store import Store
from tests.stores import Place, job
from tests.test_bells import heard

MIB = 1024 * 1024


@pytest.fixture(autouse=True)
def _needs_steps(store: Store) -> None:
    if type(store).entries is Store.entries:
        pytest.skip("this store keeps no steps")


def running(store: Store, **more: Any) -> ClaimedJob:
    store.push([job(**more)])
    return store.claim("q", "w", 1).jobs[0]


def add(store: Store, held: ClaimedJob, *entries: NewEntry) -> str:
    return store.journal("q", [JournalItem(held.id, held.fence, key=held.key, entries=entries)])[0]


def park(store: Store, held: ClaimedJob, **more: Any) -> str:
    return store.release("q", [Release(held.id, held.fence, key=held.key, park=Park(**more))])[0]


def found(store: Store, id: str) -> Record:
    record = store.find([id])[0]
    assert record is not None
    return record


def read(store: Store, id: str) -> list[Entry]:
    """The whole journal, page by page."""
    every: list[Entry] = []
    while True:
        page = store.entries([EntriesFrom(id, every[-1].n if every else 0)])[0]
        assert page is not None
        assert sum(len(each.body.body) for each in page.entries if each.body) <= PAGE + MIB
        every += page.entries
        if not page.more:
            return every
        assert page.entries


def test_a_journal_takes_so_many_entries(store: Store) -> None:
    held = running(store)
    names = [f"={n}" for n in range(MOST_ENTRIES)]
    for at in range(0, MOST_ENTRIES, 1000):
        assert add(store, held, *map(NewEntry, names[at : at + 1000])) == "ok"
    assert add(store, held, NewEntry("=over")) == "full"
    assert add(store, held, NewEntry("=0")) == "ok"
    assert store.signal([Signal("!go/1", id=held.id)])[0].status == "full"
    assert park(store, held, entries=[NewEntry("=over")]) == "full"
    assert [each.name for each in read(store, held.id)] == names
    assert found(store, held.id).journal == MOST_ENTRIES


def test_a_journal_takes_so_many_bytes(store: Store) -> None:
    held = running(store)
    left = MOST_BYTES
    for n in range(10, 25):
        assert add(store, held, NewEntry(f"={n}", body=Body("json", "é" * (MIB // 2)))) == "ok"
        left -= MIB + 5
    assert add(store, held, NewEntry("=e", body=Body("bytes", bytes(left - 3)))) == "full"
    assert add(store, held, NewEntry("=e", body=Body("bytes", bytes(left - 4)))) == "ok"
    assert add(store, held, NewEntry("=f")) == "full"
    every = read(store, held.id)
    assert [each.name for each in every] == [*(f"={n}" for n in range(10, 25)), "=e"]
    assert every[-1].body == Body("bytes", bytes(left - 4))


def test_a_removed_job_leaves_no_entries(store: Store) -> None:
    held = running(store)
    assert add(store, held, NewEntry("=a")) == "ok"
    store.remove(ids=[held.id])
    assert store.entries([EntriesFrom(held.id)]) == [None]
    assert read(store, running(store).id) == []


def test_a_signal_rings(place: Place, store: Store) -> None:
    other = place.open()
    held = running(store)

    def again() -> None:
        nonlocal held
        assert park(store, held, signals=10_000) == "ok"
        assert other.signal([Signal(f"!go/{held.fence}", id=held.id)])[0].status == "ok"
        held = other.claim("q", "w", 1).jobs[0]
        assert held.journal

    heard(store, again, Bell("work", "q"))
    other.close()


def test_a_job_waits_for_others(store: Store) -> None:
    held = running(store)
    child = job()
    store.push([child])
    own = store.claim("q", "w", 1).jobs[0]
    assert park(store, held, after=[child.id, job().id], reason='"child"') == "ok"
    record = found(store, held.id)
    assert (record.state, record.waits_for, record.on_dead, record.parked) == ("blocked", 1, "run", '"child"')
    store.complete("q", [Completion(own.id, own.fence, key=own.key)])
    assert [each.id for each in store.claim("q", "w", 10).jobs] == [held.id]
