"""One change to all jobs of a state that pass a filter, a step at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from millpond.jobs import BulkChange, BulkStep, JobFilter, JobUpdate, State, cursor_fields
from millpond.stores.sqlite.cancel import cancel
from millpond.stores.sqlite.list import FIRST, LOOK_OF_LINES, MOST_BYTES, is_in_lines, matching, places_in
from millpond.stores.sqlite.remove import remove
from millpond.stores.sqlite.requeue import requeue
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.sqlite.update import update

MOST_LOOKED_AT: Final = 5000
LOOK: Final = 500
"""Jobs that a step looks at, and a statement."""
MOST_SAMPLED: Final = 10


def bulk(
    tx: Transaction, queue: str, state: State, change: BulkChange, limit: int, after: str | None,
    filter: JobFilter | None, until: int | None,
) -> BulkStep:  # fmt: skip
    key, seq = map(int, cursor_fields(state, after)[:2]) if after else (FIRST.get(state, 2**53 - 1), -1)
    ids: list[str] = []
    looked = size = 0
    look, most = (LOOK_OF_LINES,) * 2 if is_in_lines(tx, queue, state) else (LOOK, MOST_LOOKED_AT)
    more = True
    while more and looked < most and size < MOST_BYTES and not 0 < limit <= len(ids):
        places = places_in(tx, queue, state, key, seq, look, filter.group if filter else None)
        passing, read = _passing(tx, places, state, change, filter, until)
        size += read
        more = len(places) == look
        for place in places:
            looked, key, seq = looked + 1, place["key"], place["seq"]
            if seq in passing:
                ids.append(passing[seq])
                if len(ids) == limit:
                    more = more or place is not places[-1]
                    break
    changed = _changed(tx, change, ids) if limit else 0
    next = f"{state}.{key}.{seq}" if more else None
    return BulkStep(looked, len(ids), changed, [] if limit else ids[:MOST_SAMPLED], next, tx.now)


def _passing(
    tx: Transaction, places: Sequence[sqlite3.Row], state: State, change: BulkChange,
    filter: JobFilter | None, until: int | None,
) -> tuple[Mapping[int, str], int]:  # fmt: skip
    """Ids by their places, and how much data was looked at."""
    seqs, size = [place["seq"] for place in places], 0
    if filter:
        rows = matching(tx, places, filter)
        seqs, size = [row["seq"] for row in rows if row["matches"]], sum(row["bytes"] for row in rows)
    found = tx.rows("bulk/look", seqs=json.dumps(seqs))
    return {row["seq"]: row["id"] for row in found if _is_due(row, state, change, until, tx.now)}, size


def _is_due(row: sqlite3.Row, state: State, change: BulkChange, until: int | None, now: int) -> bool:
    """It was in its state at `until`, and is not yet as an update would make it."""
    due, started, finished = row["due_at"], row["started_at"], row["finished_at"]
    if until is not None:
        if finished is not None:
            if finished > until or finished == until and due >= until:
                return False
        elif row["pushed_at"] > until or started is not None and (started > until or started == until and state != "running"):
            return False
    if change.kind != "update":
        return True
    same_time = change.run_at is None or due == change.run_at or state == "waiting" and change.run_at <= now
    return not (same_time and change.priority in (None, row["priority"]))


def _changed(tx: Transaction, change: BulkChange, ids: Sequence[str]) -> int:
    if change.kind == "requeue":
        return requeue(tx, ids, "", len(ids), None).requeued
    if change.kind == "cancel":
        return sum(state == "cancelled" for state in cancel(tx, ids))
    if change.kind == "remove":
        return remove(tx, ids, "", None, len(ids)).removed
    return sum(update(tx, JobUpdate(id, priority=change.priority, run_at=change.run_at)) == "updated" for id in ids)
