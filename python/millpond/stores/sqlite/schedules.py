"""As contract/sqlite/README.md has them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from millpond.encoding import Body
from millpond.schedules import (
    MOST_DUE, STILL_DECLARED, Declaration, DeclareOutcome, Fired, Firing, ScheduledJob, ScheduleRecord, timing_of,
)
from millpond.stores.sqlite.push import push
from millpond.stores.sqlite.transaction import Transaction

_TIMING = ("name", "version", "when", "tz", "missed", "jitter", "until", "next_at", "changed_at", "last_at")
_JOB = ("queue", "priority", "key", "group", "cost", "attempts", "timeout")


def declare(tx: Transaction, declared: Declaration) -> DeclareOutcome:
    told = tx.value("schedules/outcome", name=declared.name, version=declared.version)
    outcome: DeclareOutcome = told or ("unknown" if declared.again else "created")
    if outcome == "same":
        tx.changes("schedules/seen", name=declared.name)
    elif outcome in ("created", "changed"):
        job = {name: getattr(declared.job, name) for name in _JOB}
        data = declared.job.data
        tx.changes("schedules/store", **timing_of(declared), **job, encoding=data.encoding, data=data.body)
    return outcome


def schedules(tx: Transaction, limit: int, after: str | None, name: str | None) -> Sequence[ScheduleRecord]:
    return [_record_of(tx, row) for row in tx.rows("schedules/list", limit=limit, after=after, name=name)]


def pause_schedule(tx: Transaction, name: str, paused: bool) -> bool:
    return tx.changes("schedules/pause", name=name, paused=paused) == 1


def remove_schedule(tx: Transaction, name: str) -> bool:
    return tx.changes("schedules/remove", name=name) == 1


def fire(tx: Transaction, firing: Firing) -> Fired:
    if not tx.row("schedules/is_at", name=firing.name, version=firing.version, expected=firing.expected):
        return Fired("stale")
    if firing.jobs and tx.made_queue(firing.jobs[0].queue).room < len(firing.jobs):
        return Fired("full")
    tx.changes("schedules/fired", name=firing.name, next=firing.next, fired_at=tx.now if firing.jobs else None)
    return Fired("fired", push(tx, firing.jobs, False))


def due_schedules(tx: Transaction) -> tuple[Sequence[ScheduleRecord], int | None]:
    """Those that are due, and when the next one is of the others."""
    rows = tx.rows("schedules/due", limit=MOST_DUE)
    return [_record_of(tx, row) for row in rows], tx.value("schedules/next")


def _record_of(tx: Transaction, row: sqlite3.Row) -> ScheduleRecord:
    return ScheduleRecord(
        **{name: row[name] for name in _TIMING},
        start=row["from"],
        paused=bool(row["paused"]),
        planned=bool(row["planned"]),
        declared=row["seen_at"] + STILL_DECLARED > tx.now,
        job=ScheduledJob(**{name: row[name] for name in _JOB}, data=Body(row["encoding"], row["data"])),
    )
