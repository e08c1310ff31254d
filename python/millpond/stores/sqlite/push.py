from __future__ import annotations

from millpond.jobs import NewJob, Pushed, State
from millpond.stores.sqlite.transaction import Transaction


def push(tx: Transaction, job: NewJob) -> Pushed:
    queue = tx.made_queue(job.queue)
    due_at = max(tx.now, tx.now + (job.delay or 0) if job.run_at is None else job.run_at)
    state: State = "waiting" if due_at <= tx.now else "scheduled"
    given = vars(job) | {
        "due_at": due_at, "state": state, "encoding": job.data.encoding, "data": job.data.body,
        "line": None,
        **{name: getattr(job, name) or queue.row[name] for name in ("attempts", "timeout")},
    }  # fmt: skip
    if queue.room > 0 and queue.grouped and state == "waiting":
        tx.changes("push/touch", **given)
        given["line"] = tx.value("push/line", **given)
    if queue.room > 0 and tx.changes("push/insert", **given):
        tx.move(job.queue, None, state, due_in=due_at - tx.now)
        tx.count(job.queue, "total", "pushed")
        return Pushed("pushed", job.id)
    # A repeated push is not refused.
    existing = tx.value("push/existing", **given)
    return Pushed("existing", existing) if existing else Pushed("full", job.id)
