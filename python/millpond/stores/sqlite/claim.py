"""Claims. A claim that finds nothing writes nothing, so an idle worker takes no lock."""

from __future__ import annotations

import json
from typing import Any, Final

from millpond.contract import DEFAULTS
from millpond.encoding import Body
from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.sqlite.transaction import Queue, Transaction

SET_BACK: Final = DEFAULTS["store"]["setBack"]
"""A claim that is this many ms before the last one shows that the clock was set back."""
MOST_BYTES: Final = DEFAULTS["claim"]["bytes"]
"""Data after which a claim ends."""
FIRST_LOOK: Final = 16
NEXT_LOOKS: Final = 100
"""How many jobs it looks at before it knows how large they are, and then at a time."""


def claim(
    tx: Transaction, queue: str, worker: str, limit: int, lease: int | None, min_priority: int, per_group: int, floor: int
) -> Claimed:
    _bound(tx, queue)
    known, holds = tx.queue(queue), tx.lease(queue, lease)
    if known is None or known.row["paused"]:
        return Claimed(tx.now, holds, None, False, [])
    slots = known.row["slots"]
    start_at = None if slots == 0 else known.row["held_until"]
    given: dict[str, Any] = {
        "queue": queue, "worker": worker, "min_priority": min_priority, "per_group": per_group, "floor": floor, "lease_until": tx.now + holds,
        # One more than may start, to learn whether the limit makes the claim short.
        "limit": limit if slots is None else min(limit, slots + 1),
    }  # fmt: skip
    jobs: list[ClaimedJob] = []
    is_cut = False
    if start_at is not None and start_at <= tx.now and _pick(tx, known, given):
        if known.row["bounded"] and (refused := tx.rows("claim/refused", **given)[0])["start"] is not None:
            start_at = refused["start_at"]
            tx.changes("claim/drop", start=refused["start"])
        jobs, is_cut = _look(tx, given)
        if is_cut:
            tx.changes("claim/drop", start=len(jobs) + 1)
        if jobs:
            _take(tx, known, given)
        tx.changes("claim/clear")
    retry_after = None if len(jobs) == limit else 0 if is_cut else _retry_after(tx, known, start_at)
    return Claimed(tx.now, holds, retry_after, known.row["limited"] == 1, jobs)


def _look(tx: Transaction, given: dict[str, Any]) -> tuple[list[ClaimedJob], bool]:
    """The picks, up to the one that makes their data 16 MiB; and whether there are more."""
    jobs: list[ClaimedJob] = []
    size, count = 0, FIRST_LOOK
    while True:
        rows = tx.rows("claim/look", **given | {"from": len(jobs), "count": count})
        for row in rows:
            if size >= MOST_BYTES:
                return jobs, True
            jobs.append(job_of(json.loads(row["job"]), row["data"]))
            size += len(row["data"])
        if len(rows) < count:
            return jobs, False
        count = NEXT_LOOKS


def _bound(tx: Transaction, queue: str) -> None:
    """Stores what the queue's rate and pause count as, where they lie further ahead than that."""
    known = tx.queue(queue)
    if known is None or known.row["paused"] or known.row["held_until"] <= tx.now:
        return
    if tx.row("claim/beyond", queue=queue) is not None:
        tx.changes("claim/bound", queue=queue)
        tx.reread()


def _pick(tx: Transaction, known: Queue, given: dict[str, Any]) -> int:
    if not known.grouped:
        return tx.changes("claim/pick", **given)
    claimed_at = known.row["claimed_at"]
    if tx.now < claimed_at - SET_BACK:
        tx.changes("limits/touch", **given)
    if tx.row("limits/probe", **given) is None:
        return 0
    if tx.now != claimed_at:
        tx.changes("limits/claimed", **given)
    tx.line_up(known.name)
    tx.changes("limits/place", **given)
    return tx.changes("limits/pick", **given)


def _take(tx: Transaction, known: Queue, given: dict[str, Any]) -> None:
    if known.row["bounded"]:
        tx.changes("claim/spend", **given)
    tx.move(known.name, "waiting", "running", tx.changes("claim/claim", **given))
    for name in ("turns", "virtual", "start", "place") if known.grouped else ():
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


def job_of(told: list[Any], data: str | bytes) -> ClaimedJob:
    *values, encoding, journal = told
    return ClaimedJob(**dict(zip(_TOLD, values, strict=True)), data=Body(encoding, data), journal=journal)
