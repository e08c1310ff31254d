"""Keys that are remembered, and followers: contract/sqlite/once.sql. A queue that has none runs nothing of this."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Literal

from millpond.jobs import FINAL, NewJob, Pushed, Record
from millpond.once import Unique, due_of, unique_from
from millpond.stores.sqlite.transaction import Queue, Transaction


def meet(tx: Transaction, job: NewJob, replace: Callable[[str, int], object]) -> Pushed | Literal["follows"] | None:
    """What a push finds under its key. None: nothing. `replace` changes a scheduled or waiting job."""
    of = {"queue": job.queue, "key": job.key}
    met, once = tx.row("once/met", **of), job.once
    if met is None:
        return None
    if job.after:
        return Pushed("held", met["id"])
    existing = Pushed("existing", met["id"])
    if met["state"] is None or once is None or not (once.replace or once.follow):
        return existing
    replaced = tx.row("once/follower", **of)
    if replaced is None and once.replace and met["state"] != "running":
        replaced = met
    if replaced is not None:
        replace(replaced["id"], due_of(job.delay, job.run_at, once, replaced["pushed_at"], tx.now))
        return Pushed("replaced", replaced["id"])
    return "follows" if once.follow and met["state"] == "running" else existing


def mark(tx: Transaction, queue: Queue) -> None:
    """Before a job with more than a plain key is stored."""
    if not queue.uses_once:
        tx.changes("once/mark", queue=queue.name)
        queue.uses_once = True


def take_key(tx: Transaction, queue: Queue, key: str | None) -> None:
    if key is not None and queue.uses_once:
        tx.changes("once/take", queue=queue.name, key=key)


def keys_of(tx: Transaction, queue: Queue, ids: Sequence[str]) -> Callable[[str, bool], None]:
    """To be called before jobs end or are removed. The answer is to be called for each that has: its id, and whether it has an answer."""
    if not queue.uses_once:
        return lambda id, has_answer: None
    rows = {row["id"]: row for row in tx.rows("once/holders", ids=json.dumps(list(ids)))}

    def leave(id: str, has_answer: bool) -> None:
        if (row := rows.get(id)) is None:
            return
        if has_answer or row["state"] not in FINAL:
            _give_up(tx, queue, row, has_answer)
        else:
            tx.changes("once/forget", queue=queue.name, key=row["key"], id=id)

    return leave


def _give_up(tx: Transaction, queue: Queue, row: sqlite3.Row, has_answer: bool) -> None:
    if not let_follow(tx, queue, row["key"]) and has_answer:
        of = {"queue": queue.name, "key": row["key"], "id": row["id"]}
        _remember(tx, of, unique_from(row["remember"]), row["pushed_at"], tx.now)


def let_follow(tx: Transaction, queue: Queue, key: str | None) -> bool:
    """The job that has the key has ended: its follower has the key, and is due. False: it had none."""
    if key is None or not queue.uses_once or (follower := tx.row("once/follower", queue=queue.name, key=key)) is None:
        return False
    due_at = tx.value("once/due", id=follower["id"])
    tx.move(queue.name, "scheduled", "scheduled", due_in=due_at - tx.now)
    return True


def _remember(tx: Transaction, of: dict[str, Any], unique: Unique | None, pushed_at: int, ended_at: int) -> None:
    if unique and (until := unique.until(pushed_at, ended_at)) > tx.now:
        tx.changes("once/remember", **of, until=until)


def has_holder(tx: Transaction, record: Record) -> bool:
    met = tx.row("once/met", queue=record.queue, key=record.key)
    return met is not None and met["state"] is not None


def restore_key(tx: Transaction, queue: Queue, record: Record, is_follower: bool) -> None:
    """The key of a restored job is taken, or remembered as if the job had ended here."""
    if record.key is None or not queue.uses_once or is_follower:
        return
    if record.finished_at is None:
        take_key(tx, queue, record.key)
    elif record.state != "cancelled" and not has_holder(tx, record):
        of = {"queue": queue.name, "key": record.key, "id": record.id}
        _remember(tx, of, record.unique, record.pushed_at, record.finished_at)
