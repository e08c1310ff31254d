"""How claims end or go on: complete, fail, release, extend, journal."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from millpond.backoff import Backoff
from millpond.jobs import Failure, Release
from millpond.stores.sqlite.graphs import Endings
from millpond.stores.sqlite.journal import journal, park
from millpond.stores.sqlite.once import keys_of
from millpond.stores.sqlite.transaction import Transaction, encoded


def end(tx: Transaction, op: str, queue: str, items: Sequence[Any], lease: int | None) -> list[str]:
    endings = Endings(tx)
    outcomes = [_end(tx, op, queue, item, lease, endings) for item in items]
    endings.settle()
    return outcomes


def _end(tx: Transaction, op: str, queue: str, item: Any, lease: int | None, endings: Endings) -> str:
    known = tx.queue(queue)
    given = {"queue": queue, "id": item.id, "fence": item.fence}
    if known is None:
        return "stale"
    if item.log:
        tx.changes("log/add", **given, lines=json.dumps(list(item.log)))
    match op:
        case "complete":
            statement = "complete/keep" if known.keep["done"] > 0 else "complete/remove"
            leave_key = keys_of(tx, known, [item.id])
            endings.look(known, [item.id])
            if tx.changes(statement, **given, **encoded(item.result, "result")):
                kept = tx.finish(known, "running", "done")
                leave_key(item.id, True)
                endings.ended(item.id, "done", kept)
                return "ok"
        case "fail":
            return _fail(tx, item, given, endings)
        case "release":
            return _release(tx, item, given)
        case "journal":
            return journal(tx, given, item.entries)
        case "extend":
            until = tx.now + tx.lease(queue, lease)
            if tx.changes("extend/extend", **given, lease_until=until, **encoded(item.progress, "progress")):
                return "ok"
            return "cancelled" if tx.row("extend/cancelled", **given) else "stale"
    return "stale"


def _fail(tx: Transaction, item: Failure, given: dict[str, Any], endings: Endings) -> str:
    queue, delay = tx.made_queue(given["queue"]), item.delay
    if delay == "backoff":
        if (policy := tx.row("fail/attempt", **given)) is None:
            return "stale"
        backoff = Backoff(*(policy[f"backoff_{name}"] for name in ("base", "factor", "max", "jitter")))
        delay = backoff.delay(policy["attempt"], random.random())
    state = tx.value("fail/fail", **given, error=item.error.to_json(), delay=delay)
    if state:
        tx.count(queue.name, "total", "failed")
    if state == "dead":
        keys_of(tx, queue, [item.id])(item.id, True)
        endings.look(queue, [item.id])
        kept = tx.finish(queue, "running", "dead")
        endings.ended(item.id, "dead", kept)
        if not kept:
            tx.changes("fail/remove", **given)
        return "dead"
    if state:
        tx.move(queue.name, "running", state, due_in=delay or 0)
    return "retry" if state else "stale"


def _release(tx: Transaction, item: Release, given: dict[str, Any]) -> str:
    if item.park is not None:
        return park(tx, given, item.park)
    queue = tx.made_queue(given["queue"])
    if item.pause or queue.row["bounded"] or queue.grouped:
        tx.reread()
        for name in ("pause", "pause_group") if item.pause else ("give_back", "give_back_group"):
            tx.changes(f"release/{name}", **given, pause=item.pause)
    if not tx.changes("release/release", **given):
        return "stale"
    tx.move(queue.name, "running", "waiting")
    tx.count(queue.name, "total", "released")
    return "ok"
