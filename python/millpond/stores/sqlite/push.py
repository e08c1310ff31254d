from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import NewJob, Pushed
from millpond.stores.sqlite.transaction import Transaction


def push(tx: Transaction, jobs: Sequence[NewJob]) -> list[Pushed]:
    return [_push(tx, job) for job in jobs]


def _push(tx: Transaction, job: NewJob) -> Pushed:
    queue = tx.made_queue(job.queue)
    due_at = max(tx.now, tx.now + (job.delay or 0) if job.run_at is None else job.run_at)
    if queue.room <= 0:
        # A repeated push is not refused.
        return _existing(tx, job) or Pushed("full", job.id)
    stored = tx.changes(
        "push/insert",
        id=job.id,
        queue=job.queue,
        state="waiting" if due_at <= tx.now else "scheduled",
        priority=job.priority,
        attempts=queue.attempts if job.attempts is None else job.attempts,
        due_at=due_at,
        timeout=queue.timeout if job.timeout is None else job.timeout,
        key=job.key,
        group=job.group,
        cost=1,
        line=None,
        trace=job.trace,
        encoding=job.data.encoding,
        data=job.data.body,
    )
    if stored == 0:
        return _existing(tx, job) or Pushed("existing", job.id)
    tx.move(job.queue, None, "waiting" if due_at <= tx.now else "scheduled")
    return Pushed("pushed", job.id)


def _existing(tx: Transaction, job: NewJob) -> Pushed | None:
    row = tx.row("push/existing", id=job.id, queue=job.queue, key=job.key)
    return Pushed("existing", row["id"]) if row else None
