"""What people look at and repair: find, list, stats, requeue."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from millpond.encoding import SAFE, Body
from millpond.jobs import STATES, JobError, QueueStats, Record, Slice, State
from millpond.stores.sqlite.transaction import Reader, Transaction

FIRST_PAGE = {"seq": -SAFE, "due_at": -SAFE, "lease_until": -SAFE, "priority": SAFE, "finished_at": SAFE}


def find(reader: Reader, id: str) -> Record | None:
    row = reader.row("find/find", id=id)
    return _record(row) if row else None


def list_jobs(reader: Reader, queue: str, state: State, limit: int, after: str | None) -> list[Record]:
    place: dict[str, Any] = FIRST_PAGE
    if after is not None:
        cursor = reader.row("list/cursor", id=after, queue=queue, state=state)
        if cursor is None:
            return []
        place = dict(cursor)
    statement = "list/final" if state in ("done", "dead", "cancelled") else f"list/{state}"
    return [_record(row) for row in reader.rows(statement, queue=queue, state=state, limit=limit, **place)]


def stats(reader: Reader, queue: str | None, minutes: int) -> list[QueueStats]:
    found = {
        row["name"]: QueueStats(
            row["name"], row["capacity"], row["paused"] == 1, {state: row[state] for state in STATES}, None, []
        )
        for row in reader.rows("stats/queues", queue=queue)
    }
    for each in found.values():
        oldest = reader.row("stats/oldest", queue=each.queue) if each.counts["waiting"] > 0 else None
        if oldest and oldest["due_at"] is not None:
            each.oldest_waiting = max(0, reader.now - oldest["due_at"])
    slices: dict[tuple[Any, ...], Slice] = {}
    if minutes > 0:
        for row in reader.rows("stats/histograms", queue=queue, minute=reader.now // 60_000 - minutes + 1):
            key = (row["queue"], row["priority"], row["metric"])
            slices.setdefault(key, Slice(*key, {})).buckets[row["bucket"]] = row["count"]
    for slice in slices.values():
        if slice.queue in found:
            found[slice.queue].histograms.append(slice)
    return list(found.values())


def requeue_ids(tx: Transaction, ids: Sequence[str]) -> int:
    return sum(_requeue(tx, row) for id in ids for row in tx.rows("requeue/look", id=id))


def requeue_queue(tx: Transaction, queue: str, limit: int) -> int:
    return sum(_requeue(tx, row) for row in tx.rows("requeue/dead", queue=queue, limit=limit))


def _requeue(tx: Transaction, row: sqlite3.Row) -> int:
    changed = tx.changes("requeue/requeue", id=row["id"])
    if changed:
        tx.move(row["queue"], row["state"], "waiting")
    return changed


def _record(row: sqlite3.Row) -> Record:
    def body(encoding: str, data: str) -> Body | None:
        return None if row[encoding] is None else Body(row[encoding], row[data])

    return Record(
        row["id"], row["queue"], row["state"], row["priority"], row["attempt"], row["attempts"], row["key"],
        row["group"], row["timeout"], row["trace"], row["pushed_at"], row["due_at"], row["started_at"],
        row["finished_at"], row["worker"], Body(row["encoding"], row["data"]), body("progress_encoding", "progress"),
        body("result_encoding", "result"), None if row["error"] is None else JobError.from_json(row["error"]),
    )  # fmt: skip
