from __future__ import annotations

import json

from millpond.encoding import Body, Encoding
from millpond.errors import MillpondError
from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.sqlite.transaction import Reader, Transaction

NO_QUEUE_LEASE = 30_000


def look(reader: Reader, queue: str, lease: int | None) -> Claimed | None:
    """The answer if there is nothing to claim; None: a claim may find something. So an idle worker takes no lock."""
    known = reader.read_queue(queue)
    if known is None or known.paused:
        return Claimed(reader.now, lease or (known.lease if known else NO_QUEUE_LEASE), None, [])
    if known.limited:
        raise MillpondError("NotSupported", f"queue {queue} has limits, which the Python client does not keep on SQLite")
    if reader.row("claim/probe", queue=queue, min_priority=0):
        return None
    return Claimed(reader.now, lease or known.lease, _retry_after(reader, queue), [])


def claim(tx: Transaction, queue: str, worker: str, limit: int, lease: int | None, floor: int) -> Claimed:
    known = tx.queue(queue)
    lease = lease or (known.lease if known else NO_QUEUE_LEASE)
    if known is None or known.paused:
        return Claimed(tx.now, lease, None, [])
    if known.limited:
        # Since the look.
        return Claimed(tx.now, lease, 0, [])
    parameters = {"queue": queue, "limit": limit, "min_priority": 0, "floor": floor}
    told = json.loads(tx.rows("claim/look", **parameters)[0]["jobs"])
    data = tx.rows("claim/data", **parameters)
    jobs = [_claimed(row["data"], *fields) for fields, row in zip(told, data, strict=True)]
    tx.changes("claim/claim", **parameters, worker=worker, lease_until=tx.now + lease)
    tx.move(queue, "waiting", "running", len(jobs))
    return Claimed(tx.now, lease, _retry_after(tx, queue) if len(jobs) < limit else None, jobs)


def _claimed(
    data: str | bytes, id: str, fence: int, attempt: int, attempts: int, priority: int,
    group: str | None, key: str | None, timeout: int | None, trace: str | None, pushed_at: int, due_at: int, encoding: Encoding,
) -> ClaimedJob:  # fmt: skip
    return ClaimedJob(
        id, fence, attempt, attempts, priority, group, key, timeout, trace, pushed_at, due_at, Body(encoding, data)
    )


def _retry_after(reader: Reader, queue: str) -> int | None:
    row = reader.row("claim/next_due", queue=queue)
    return None if row is None or row["due_at"] is None else max(0, row["due_at"] - reader.now)
