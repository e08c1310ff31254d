from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from millpond.jobs import JobUpdate, NewJob, Pushed, State
from millpond.once import NEVER, due_of
from millpond.stores.sqlite.graphs import Endings, come, has_parents, link, standing_of
from millpond.stores.sqlite.once import mark, meet, take_key
from millpond.stores.sqlite.transaction import Queue, Transaction, savepoint
from millpond.stores.sqlite.update import update


@dataclass
class _Call:
    """`stands`: the ids of jobs that stand for others: those were not stored for them."""

    endings: Endings
    stands: dict[str, str] = field(default_factory=dict)


def push(tx: Transaction, jobs: Sequence[NewJob], whole: bool) -> Sequence[Pushed]:
    if not whole:
        return _push_each(tx, jobs)
    # As by a push that stores nothing, the queues are there afterwards.
    for name in {job.queue for job in jobs}:
        tx.made_queue(name)
    with savepoint(tx) as undo:
        outcomes = _push_each(tx, jobs)
        if not any(each.status in ("full", "orphan", "held") for each in outcomes):
            return outcomes
        undo()
    pushed = {each.id for each in outcomes if each.status == "pushed"}

    def is_undone(each: Pushed) -> bool:
        # A job of the call that has the key or id of another of its jobs is not there either.
        return each.status in ("pushed", "replaced") or each.status == "existing" and each.id in pushed

    return [Pushed("withheld", job.id) if is_undone(each) else each for job, each in zip(jobs, outcomes)]


def _push_each(tx: Transaction, jobs: Sequence[NewJob]) -> Sequence[Pushed]:
    call, outcomes = _Call(Endings(tx)), []
    for job in jobs:
        outcome = _push(tx, job, call)
        if outcome.id != job.id and outcome.status != "held":
            call.stands[job.id] = outcome.id
        outcomes.append(outcome)
    call.endings.settle()
    return outcomes


def _push(tx: Transaction, job: NewJob, call: _Call) -> Pushed:
    queue = tx.made_queue(job.queue)
    if has_parents(job) or _has_more(queue, job):
        return _push_more(tx, queue, job, call)
    given = _given(tx, queue, job)
    if queue.room > 0 and tx.changes("push/insert", **given):
        return _pushed(tx, queue, job, given)
    # A repeated push is not refused.
    existing = tx.value("push/existing", **given)
    return Pushed("existing", existing) if existing else Pushed("full", job.id)


def _has_more(queue: Queue, job: NewJob) -> bool:
    return job.key is not None and bool(job.once or queue.uses_once)


def _push_more(tx: Transaction, queue: Queue, job: NewJob, call: _Call) -> Pushed:
    """A job with parents, or whose key may be remembered, replace another one, or make it follow."""
    has_more = _has_more(queue, job)
    if existing := tx.value("push/existing", id=job.id, queue=job.queue, key=None if has_more else job.key):
        return Pushed("held" if job.after and existing != job.id else "existing", existing)
    met = meet(tx, job, lambda id, run_at: update(tx, JobUpdate(id, data=job.data, run_at=run_at))) if has_more else None
    if isinstance(met, Pushed):
        return met
    if queue.room <= 0:
        return Pushed("full", job.id)
    standing = standing_of(tx, job.after, job.on_dead, job.part_of, call.stands) if has_parents(job) else None
    if isinstance(standing, str):
        return Pushed("orphan", job.id, parent=standing)
    unique = job.once and job.once.unique
    if unique or met:
        mark(tx, queue)
    given = _given(tx, queue, job, follows=met == "follows", blocked=standing is not None and standing.blocked)
    if not met:
        take_key(tx, queue, job.key)
    tx.changes("once/insert", **given, remember=unique and unique.stored)
    pushed = _pushed(tx, queue, job, given)
    if standing:
        link(tx, queue, standing, call.endings)
    return pushed


def _given(tx: Transaction, queue: Queue, job: NewJob, follows: bool = False, blocked: bool = False) -> dict[str, Any]:
    due_at = due_of(job.delay, job.run_at, job.once, tx.now, tx.now)
    state: State = "blocked" if blocked else "waiting" if due_at <= tx.now and not follows else "scheduled"
    given = vars(job) | {
        "due_at": NEVER if follows else due_at, "follow_due": due_at if follows else None, "state": state,
        "encoding": job.data.encoding, "data": job.data.body, "line": None,
        **{name: getattr(job, name) or queue.row[name] for name in ("attempts", "timeout")},
    }  # fmt: skip
    if queue.room > 0 and queue.grouped and state == "waiting":
        tx.changes("push/touch", **given)
        given["line"] = tx.value("push/line", **given)
    return given


def _pushed(tx: Transaction, queue: Queue, job: NewJob, given: dict[str, Any]) -> Pushed:
    tx.move(job.queue, None, given["state"], due_in=given["due_at"] - tx.now)
    tx.count(job.queue, "total", "pushed")
    come(tx, queue, job.id)
    return Pushed("pushed", job.id)
