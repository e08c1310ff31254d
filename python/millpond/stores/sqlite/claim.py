"""Claims. A claim that finds nothing writes nothing, so an idle worker takes no lock."""

from __future__ import annotations

import json
from typing import Any

from millpond.encoding import Body
from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.sqlite.transaction import Queue, Transaction


def claim(
    tx: Transaction, queue: str, worker: str, limit: int, lease: int | None, min_priority: int, floor: int
) -> Claimed:
    known, holds = tx.queue(queue), tx.lease(queue, lease)
    if known is None or known.row["paused"]:
        return Claimed(tx.now, holds, None, False, [])
    start_at, slots = known.row["start_at"], known.row["slots"]
    given: dict[str, Any] = {
        "queue": queue, "worker": worker, "min_priority": min_priority, "floor": floor, "lease_until": tx.now + holds,
        # One more than may start, to learn whether the limit makes the claim short.
        "limit": limit if slots is None else min(limit, slots + 1),
    }  # fmt: skip
    jobs: list[ClaimedJob] = []
    if start_at is not None and start_at <= tx.now and _pick(tx, known, given):
        if known.row["bounded"] and (refused := tx.rows("claim/refused", **given)[0])["start"] is not None:
            start_at = refused["start_at"]
            tx.changes("claim/drop", start=refused["start"])
        jobs = [_job(json.loads(row["job"]), row["data"]) for row in tx.rows("claim/look", **given)]
        if jobs:
            _take(tx, known, given)
        tx.changes("claim/clear")
    return Claimed(
        tx.now, holds, _retry_after(tx, known, start_at) if len(jobs) < limit else None, known.row["limited"] == 1, jobs
    )


def _pick(tx: Transaction, known: Queue, given: dict[str, Any]) -> int:
    if not known.grouped:
        return tx.changes("claim/pick", **given)
    if tx.row("limits/probe", **given) is None:
        return 0
    tx.line_up(known.name)
    tx.changes("limits/place", **given)
    return tx.changes("limits/pick", **given)


def _take(tx: Transaction, known: Queue, given: dict[str, Any]) -> None:
    if known.row["bounded"]:
        tx.changes("claim/spend", **given)
    tx.move(known.name, "waiting", "running", tx.changes("claim/claim", **given))
    for name in ("turns", "virtual", "start") if known.grouped else ():
        tx.changes(f"limits/{name}", **given)


def _retry_after(tx: Transaction, known: Queue, start_at: int | None) -> int | None:
    """`start_at`: from when the queue allows the first start that it refused."""
    refused = start_at is None or start_at > tx.now
    times = [tx.value("claim/retry", queue=known.name, grouped=int(known.grouped and not refused))]
    if refused:
        times.append(start_at)
    return min((max(0, time - tx.now) for time in times if time is not None), default=None)


_TOLD = (
    *("id", "fence", "attempt", "attempts", "priority", "group", "key"),
    *("timeout", "trace", "pushed_at", "due_at"),
)


def _job(told: list[Any], data: str | bytes) -> ClaimedJob:
    *values, encoding = told
    return ClaimedJob(**dict(zip(_TOLD, values, strict=True)), data=Body(encoding, data))
