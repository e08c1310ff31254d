"""How claims end or go on: complete, fail, release, extend, cancel."""

from __future__ import annotations

import random

from millpond.jobs import Completion, ExtendOutcome, Extension, Failure, FailOutcome, Held, Outcome, State
from millpond.stores.sqlite.claim import NO_QUEUE_LEASE
from millpond.stores.sqlite.transaction import Transaction, backoff_of_row


def complete(tx: Transaction, queue: str, item: Completion) -> Outcome:
    known = tx.queue(queue)
    if known is None:
        return "stale"
    statement = "complete/keep" if known.keeps("done") else "complete/remove"
    encoding, result = (item.result.encoding, item.result.body) if item.result else (None, None)
    if not tx.changes(statement, queue=queue, id=item.id, fence=item.fence, encoding=encoding, result=result):
        return "stale"
    tx.finish(known, "running", "done")
    return "ok"


def fail(tx: Transaction, queue: str, item: Failure) -> FailOutcome:
    known, delay = tx.queue(queue), item.delay
    if known is None:
        return "stale"
    if delay == "backoff":
        policy = tx.row("fail/attempt", queue=queue, id=item.id, fence=item.fence)
        if policy is None:
            return "stale"
        delay = backoff_of_row(policy).delay(policy["attempt"], random.random())
    row = tx.row("fail/fail", queue=queue, id=item.id, fence=item.fence, error=item.error.to_json(), delay=delay)
    if row is None:
        return "stale"
    if row["state"] != "dead":
        tx.move(queue, "running", row["state"])
        return "retry"
    tx.finish(known, "running", "dead")
    if not known.keeps("dead"):
        tx.changes("fail/remove", id=item.id)
    return "dead"


def release(tx: Transaction, queue: str, item: Held) -> Outcome:
    if not tx.changes("release/release", queue=queue, id=item.id, fence=item.fence):
        return "stale"
    tx.queue(queue)
    tx.move(queue, "running", "waiting")
    return "ok"


def extend(tx: Transaction, queue: str, item: Extension, lease: int | None) -> ExtendOutcome:
    known = tx.queue(queue)
    until = tx.now + (lease or (known.lease if known else NO_QUEUE_LEASE))
    encoding, progress = (item.progress.encoding, item.progress.body) if item.progress else (None, None)
    claim = {"queue": queue, "id": item.id, "fence": item.fence}
    if tx.changes("extend/extend", **claim, lease_until=until, encoding=encoding, progress=progress):
        return "ok"
    return "cancelled" if tx.row("extend/cancelled", **claim) else "stale"


def cancel(tx: Transaction, id: str) -> State | None:
    row = tx.row("cancel/look", id=id)
    state: State | None = row["state"] if row else None
    if row is None or state not in ("scheduled", "waiting", "running"):
        return state
    queue = tx.made_queue(row["queue"])
    tx.changes("cancel/cancel" if queue.keeps("cancelled") else "cancel/remove", id=id)
    tx.finish(queue, state, "cancelled")
    return "cancelled"
