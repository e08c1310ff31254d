"""Journals of jobs, and parks: contract/sqlite/journal.sql. Jobs without journals run nothing of this."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from millpond.contract import bound
from millpond.jobs import FINAL, State
from millpond.steps import MOST_BYTES, MOST_ENTRIES, PAGE, EntriesFrom, EntriesPage, Entry, NewEntry, Park, Signal, Signalled
from millpond.stores.sqlite.graphs import wait_again
from millpond.stores.sqlite.transaction import Transaction, body, encoded


def add_entries(tx: Transaction, job: int, given: Sequence[NewEntry]) -> int | None:
    """How many signals the journal has then; None: it would outgrow a bound, and nothing was added."""
    counts = tx.row("journal/counts", job=job)
    added: dict[str, NewEntry] = {}
    for entry in given:
        known = entry.name in added or counts is not None and tx.row("journal/known", job=job, name=entry.name) is not None
        if not known:
            added[entry.name] = entry
    entries, size, signals, last = counts or (0, 0, 0, 0)
    if not added:
        return int(signals)
    more = sum(entry.size for entry in added.values())
    if entries + len(added) > MOST_ENTRIES or size + more > MOST_BYTES:
        return None
    for n, entry in enumerate(added.values(), last + 1):
        own = {"job": job, "n": n, "name": entry.name, "meta": entry.meta, "bytes": entry.size}
        tx.changes("journal/add", **own, **encoded(entry.body, "body"))
    if counts is None:
        tx.changes("journal/mark", job=job)
    new_signals = sum(name.startswith("!") for name in added)
    tx.changes("journal/grow", job=job, entries=len(added), bytes=more, signals=new_signals, last=last + len(added))
    return int(signals) + new_signals


def journal(tx: Transaction, given: dict[str, Any], entries: Sequence[NewEntry]) -> str:
    """`given`: queue, id and fence of the claim."""
    job = tx.value("journal/held", **given)
    if job is None:
        return "stale"
    return "full" if add_entries(tx, job, entries) is None else "ok"


def entries(tx: Transaction, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
    room, pages = PAGE, list[EntriesPage | None]()
    for item in items:
        if (found := tx.row("journal/place", id=item.id)) is None:
            pages.append(None)
            continue
        last = found["last"] or 0
        rows = tx.rows("journal/page", job=found["job"], after=item.after, room=room, whole=room == PAGE) if last > item.after else []
        room -= sum(row["bytes"] for row in rows)
        told = [Entry(row["n"], row["name"], row["meta"], body(row, "encoding", "body")) for row in rows]
        pages.append(EntriesPage(told, (told[-1].n if told else item.after) < last))
    return pages


def signal(tx: Transaction, item: Signal) -> Signalled:
    by_id = item.id is not None
    row = tx.row("journal/named", id=item.id) if by_id else tx.row("journal/keyed", queue=item.queue, key=item.key)
    if row is None:
        return Signalled("none", item.id)
    if row["state"] in FINAL:
        return Signalled("ended", row["id"])
    if add_entries(tx, row["job"], [item]) is None:
        return Signalled("full", row["id"])
    if row["state"] == "scheduled" and row["parked"]:
        _wake(tx, row)
    return Signalled("ok", row["id"])


def _wake(tx: Transaction, row: sqlite3.Row) -> None:
    tx.changes("journal/wake", job=row["job"])
    tx.made_queue(row["queue"])
    tx.move(row["queue"], "scheduled", "waiting")
    tx.line_up(row["queue"])


def park(tx: Transaction, given: dict[str, Any], park: Park) -> str:
    """The claim is over, and the job waits for what `park` says. `given`: queue, id and fence of the claim."""
    job = tx.value("journal/held", **given)
    if job is None:
        return "stale"
    signals = add_entries(tx, job, park.entries)
    if signals is None:
        return "full"
    queue = tx.made_queue(given["queue"])
    until = tx.now + bound("delay")[1] if park.until is None else park.until
    state: State = "scheduled" if not park.after and until > tx.now and signals <= park.signals else "waiting"
    if wait_again(tx, queue, job, park.after):
        state = "blocked"
    due_at = until if state == "scheduled" else tx.now
    tx.changes("release/park", job=job, state=state, due_at=due_at, reason=park.reason)
    tx.move(queue.name, "running", state, due_in=due_at - tx.now)
    return "ok"


def forget(tx: Transaction, id: str, first: int) -> None:
    """Takes away what the worker added from a number on."""
    job = tx.value("journal/place", id=id)
    if tx.changes("journal/forget", **{"job": job, "from": first}):
        tx.changes("journal/recount", job=job)
