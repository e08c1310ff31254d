from __future__ import annotations

import sqlite3
from typing import Final

from millpond.jobs import FINAL, Lost, Swept
from millpond.stores.idle import IdleQueues
from millpond.stores.sqlite.transaction import Transaction

MINUTES_KEPT: Final = 60
WORK: Final = ("line_up", "forget", "promote", "lost", *FINAL)


def sweep(tx: Transaction, limit: int, idle: IdleQueues, writes: bool) -> Swept | None:
    """`writes` False: looks only, and answers None if there is something to do."""
    swept, rows = Swept(), tx.rows("sweep/look")
    busy = [row for row in rows if any(row[kind] for kind in WORK)]
    first, oldest = tx.now // 60_000 - MINUTES_KEPT + 1, tx.value("sweep/oldest_minute")
    old = oldest is not None and oldest < first
    forgotten = 0
    if writes:
        for row in busy:
            if row["forget"]:
                forgotten += tx.changes("limits/forget", queue=row["name"], limit=limit - forgotten)
            _sweep_queue(tx, row, limit, swept)
        tx.reread()
        for name in idle.long(tx.now):
            if tx.changes("sweep/remove_queue", queue=name):
                tx.changes("sweep/forget_queue", queue=name)
        if old:
            tx.changes("sweep/forget_minutes", minute=first)
        rows = tx.rows("sweep/look")
    idle.seen((row["name"] for row in rows if row["idle"]), tx.now)
    if not writes and (busy or old or idle.long(tx.now)):
        return None
    swept.next_due = min((max(0, row["due_at"] - tx.now) for row in rows if row["due_at"] is not None), default=None)
    swept.queues, swept.more = len(rows), limit in (swept.promoted, len(swept.lost), swept.expired, forgotten)
    return swept


def _sweep_queue(tx: Transaction, row: sqlite3.Row, limit: int, swept: Swept) -> None:
    name, queue = row["name"], tx.made_queue(row["name"])
    if row["promote"]:
        promoted = tx.changes("sweep/promote", queue=name, limit=limit - swept.promoted)
        tx.move(name, "scheduled", "waiting", promoted)
        swept.promoted += promoted
    if row["line_up"] or row["promote"]:
        tx.line_up(name)
    for lost in tx.rows("sweep/lost", queue=name, limit=limit - len(swept.lost)) if row["lost"] else []:
        swept.lost.append(Lost(lost["id"], name, lost["attempt"], lost["state"]))
        if lost["state"] == "waiting":
            tx.move(name, "running", "waiting")
        elif not tx.finish(queue, "running", "dead"):
            tx.changes("sweep/remove", id=lost["id"])
    for state in FINAL:
        if row[state]:
            left, until = limit - swept.expired, tx.now - queue.keep[state]
            expired = tx.changes("sweep/expire", queue=name, state=state, until=until, limit=left)
            tx.move(name, state, None, expired)
            swept.expired += expired
