from __future__ import annotations

from typing import Any

from millpond.jobs import JobUpdate, NewJob, Pushed, State
from millpond.once import NEVER, due_of
from millpond.stores.sqlite.once import mark, meet, take_key
from millpond.stores.sqlite.transaction import Queue, Transaction
from millpond.stores.sqlite.update import update


def push(tx: Transaction, job: NewJob) -> Pushed:
    queue = tx.made_queue(job.queue)
    if job.key is not None and (job.once or queue.uses_once):
        return _push_more(tx, queue, job)
    given = _given(tx, queue, job)
    if queue.room > 0 and tx.changes("push/insert", **given):
        return _pushed(tx, job, given)
    # A repeated push is not refused.
    existing = tx.value("push/existing", **given)
    return Pushed("existing", existing) if existing else Pushed("full", job.id)


def _push_more(tx: Transaction, queue: Queue, job: NewJob) -> Pushed:
    """A job whose key may be remembered, replace another one, or make it follow."""
    if tx.value("push/existing", id=job.id, queue=job.queue, key=None):
        return Pushed("existing", job.id)
    met = meet(tx, job, lambda id, run_at: update(tx, JobUpdate(id, data=job.data, run_at=run_at)))
    if isinstance(met, Pushed):
        return met
    if queue.room <= 0:
        return Pushed("full", job.id)
    unique = job.once and job.once.unique
    if unique or met:
        mark(tx, queue)
    given = _given(tx, queue, job, follows=met == "follows")
    if not met:
        take_key(tx, queue, job.key)
    tx.changes("once/insert", **given, remember=unique and unique.stored)
    return _pushed(tx, job, given)


def _given(tx: Transaction, queue: Queue, job: NewJob, follows: bool = False) -> dict[str, Any]:
    due_at = due_of(job.delay, job.run_at, job.once, tx.now, tx.now)
    state: State = "waiting" if due_at <= tx.now and not follows else "scheduled"
    given = vars(job) | {
        "due_at": NEVER if follows else due_at, "follow_due": due_at if follows else None, "state": state,
        "encoding": job.data.encoding, "data": job.data.body, "line": None,
        **{name: getattr(job, name) or queue.row[name] for name in ("attempts", "timeout")},
    }  # fmt: skip
    if queue.room > 0 and queue.grouped and state == "waiting":
        tx.changes("push/touch", **given)
        given["line"] = tx.value("push/line", **given)
    return given


def _pushed(tx: Transaction, job: NewJob, given: dict[str, Any]) -> Pushed:
    tx.move(job.queue, None, given["state"], due_in=given["due_at"] - tx.now)
    tx.count(job.queue, "total", "pushed")
    return Pushed("pushed", job.id)
