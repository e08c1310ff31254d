"""Claims. A claim that finds nothing only reads, so an idle worker takes no lock."""

from __future__ import annotations

import json
from typing import Any, Final

from millpond.encoding import Body
from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.sqlite.transaction import Queue, Transaction

_FIELDS: Final = (
    "id", "fence", "attempt", "attempts", "priority", "group", "key", "timeout", "trace", "pushed_at", "due_at",
)  # fmt: skip


def look(tx: Transaction, queue: str, lease: int | None, min_priority: int) -> Claimed | None:
    """The answer if there is nothing to claim; None: a claim may find something."""
    known = tx.queue(queue)
    if known is None or known.row["paused"]:
        return Claimed(tx.now, tx.lease(queue, lease), None, False, [])
    start_at = known.start_at(1)
    allowed = start_at is not None and start_at <= tx.now
    if allowed and tx.row("limits/probe" if known.grouped else "claim/probe", queue=queue, min_priority=min_priority):
        return None
    return _claimed(tx, known, lease, [], None if allowed else 1)


def claim(
    tx: Transaction, queue: str, worker: str, limit: int, lease: int | None, min_priority: int, floor: int
) -> Claimed:
    nothing, known = look(tx, queue, lease, min_priority), tx.queue(queue)
    if nothing or known is None:
        return nothing or Claimed(tx.now, tx.lease(queue, lease), None, False, [])
    refused = None
    # One more than may start, to learn whether the limit makes the claim short.
    most = limit if known.slots is None else min(limit, known.slots + 1)
    until = tx.now + tx.lease(queue, lease)
    given: dict[str, Any] = {
        "queue": queue, "worker": worker, "limit": most, "lease_until": until, "min_priority": min_priority, "floor": floor
    }  # fmt: skip
    file = "limits" if known.grouped else "claim"
    if known.grouped:
        tx.line_up(queue)
        for name in ("place", "pick"):
            tx.changes(f"limits/{name}", **given)
    if known.slots is not None or known.rate:
        costs = [row["cost"] for row in tx.rows(f"{file}/costs", **given)]
        given["limit"], refused = _spend(tx, known, costs)
        if known.grouped:
            tx.changes("limits/drop", **given)
        if known.rate:
            tx.changes("claim/spend", full=known.full, **given)
    told, data = json.loads(tx.value(f"{file}/look", **given)), tx.rows(f"{file}/data", **given)
    jobs = [_job(fields, row["data"]) for fields, row in zip(told, data, strict=True)]
    tx.changes(f"{file}/claim", **given)
    tx.move(queue, "waiting", "running", len(jobs))
    if known.grouped:
        for name in ("turns", "virtual", "start", "clear"):
            tx.changes(f"limits/{name}", **given)
    return _claimed(tx, known, lease, jobs, refused, limit)


def _spend(tx: Transaction, known: Queue, costs: list[int]) -> tuple[int, int | None]:
    """How many of the jobs the queue allows to start, and the cost of the first that it refuses."""
    for number, cost in enumerate(costs):
        start_at = known.start_at(cost)
        if start_at is None or start_at > tx.now:
            return number, cost
        if known.rate:
            known.full = known.rate.started(known.full, tx.now * 1000, cost)
        if known.slots is not None:
            known.slots -= 1
    return len(costs), None


def _claimed(
    tx: Transaction, known: Queue, lease: int | None, jobs: list[ClaimedJob], refused: int | None, limit: int = 1
) -> Claimed:
    """`refused`: the cost of a start that the queue did not allow."""
    times = [tx.value("claim/next_due", queue=known.name)]
    if refused is not None:
        times.append(known.start_at(refused))
    elif known.grouped:
        times.append(tx.value("limits/held", queue=known.name))
        times.append(tx.now if tx.row("limits/behind", queue=known.name) else None)
    after = min((max(0, time - tx.now) for time in times if time is not None), default=None)
    limited = any(known.limits.get(name) is not None for name in ("running", "rate", "groupRate"))
    return Claimed(tx.now, tx.lease(known.name, lease), after if len(jobs) < limit else None, limited, jobs)


def _job(fields: list[Any], data: str | bytes) -> ClaimedJob:
    return ClaimedJob(**dict(zip(_FIELDS, fields)), data=Body(fields[-1], data))
