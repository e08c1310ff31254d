from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from millpond.contract import DEFAULTS
from millpond.jobs import JobError, JobOutcome, Record
from millpond.once import unique_from
from millpond.stores.sqlite.graphs import waits_of
from millpond.stores.sqlite.transaction import Transaction, body
from millpond.stores.wire import read

MOST_BYTES: Final = DEFAULTS["store"]["outcomes"]
BODIES: Final = {"data": "encoding", "progress": "progress_encoding", "result": "result_encoding"}


def find(tx: Transaction, ids: Sequence[str]) -> Sequence[Record | None]:
    return [record_of(tx, row) if (row := tx.row("find/find", id=id)) else None for id in ids]


def outcomes(tx: Transaction, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
    found: list[JobOutcome | None] = []
    size = 0
    for id in ids:
        outcome = _outcome(row) if (row := tx.row("outcomes/outcome", id=id)) else None
        found.append(outcome)
        if outcome:
            size += len(outcome.result.body if outcome.result else "") + len(outcome.error.to_json() if outcome.error else "")
        if size >= MOST_BYTES:
            break
    return found


def _outcome(row: sqlite3.Row) -> JobOutcome:
    error = None if row["error"] is None else JobError.from_json(row["error"])
    fields = (row["id"], row["queue"], row["state"], row["attempt"], row["attempts"])
    return JobOutcome(*fields, body(row, "result_encoding", "result"), error)


def ahead(tx: Transaction, id: str) -> int | None:
    ahead: int | None = tx.value("ahead/ahead", id=id)
    return ahead


def record_of(tx: Transaction, row: sqlite3.Row) -> Record:
    bodies = {name: body(row, encoding, name) for name, encoding in BODIES.items()}
    error = None if row["error"] is None else JobError.from_json(row["error"])
    follows = row["follow_due"] is not None
    # Of a job that is held for its children, the time is elsewhere.
    held = tx.row("graphs/held_at", seq=row["seq"]) if row["state"] == "done" and row["finished_at"] is None else None
    more = {"due_at": row["follow_due"] if follows else row["due_at"], "follows": follows, "unique": unique_from(row["remember"])} | waits_of(tx, row)
    all_of = dict(row) | dict(held or {})
    return read(Record, all_of, **bodies, **more, error=error, log=_log_of(row["log"]), journal=row["entries"], entries=())


def _log_of(stored: str | None) -> Sequence[str]:
    """Another program may have stored something else: then it is one line."""
    if stored is None:
        return ()
    try:
        lines = json.loads(stored)
    except ValueError:
        return (stored,)
    return tuple(str(line) for line in lines) if isinstance(lines, list) else (stored,)
