from __future__ import annotations

import sqlite3

from millpond.jobs import Lost, Swept
from millpond.stores.idle import IdleQueues
from millpond.stores.sqlite.transaction import Reader, Transaction

MINUTES_KEPT = 60


def look(reader: Reader, idle: IdleQueues) -> Swept | None:
    """The answer if there is nothing to do."""
    rows = reader.rows("sweep/look")
    idle.seen(_idle(rows), reader.now)
    if any(map(_has_work, rows)) or idle.long(reader.now) or _has_old_minute(reader):
        return None
    return _answer(reader, rows)


def sweep(tx: Transaction, limit: int, idle: IdleQueues) -> Swept:
    swept = Swept()
    for row in filter(_has_work, tx.rows("sweep/look")):
        _sweep_queue(tx, row, limit, swept)
    tx.write_counts()
    for name in idle.long(tx.now):
        if tx.changes("sweep/remove_queue", queue=name):
            tx.changes("sweep/forget_queue", queue=name)
        tx.forget_queue(name)
    if _has_old_minute(tx):
        tx.changes("sweep/forget_minutes", minute=tx.now // 60_000 - MINUTES_KEPT + 1)
    rows = tx.rows("sweep/look")
    idle.seen(_idle(rows), tx.now)
    after = _answer(tx, rows)
    swept.next_due, swept.queues = after.next_due, after.queues
    swept.more = limit in (swept.promoted, len(swept.lost), swept.expired)
    return swept


def _sweep_queue(tx: Transaction, row: sqlite3.Row, limit: int, swept: Swept) -> None:
    name = row["name"]
    queue = tx.made_queue(name)
    if row["promote"]:
        promoted = tx.changes("sweep/promote", queue=name, limit=limit - swept.promoted)
        tx.move(name, "scheduled", "waiting", promoted)
        swept.promoted += promoted
    if row["lost"]:
        for lost in tx.rows("sweep/lost", queue=name, limit=limit - len(swept.lost)):
            swept.lost.append(Lost(lost["id"], name, lost["attempt"], lost["state"]))
            if lost["state"] == "waiting":
                tx.move(name, "running", "waiting")
                continue
            tx.finish(queue, "running", "dead")
            if not queue.keeps("dead"):
                tx.changes("sweep/remove", id=lost["id"])
    for state, keep in (("done", queue.keep_done), ("dead", queue.keep_dead), ("cancelled", queue.keep_dead)):
        if row[state]:
            expired = tx.changes(
                "sweep/expire", queue=name, state=state, until=tx.now - keep, limit=limit - swept.expired
            )
            tx.move(name, state, None, expired)  # type: ignore[arg-type]  # these states alone
            swept.expired += expired


def _idle(rows: list[sqlite3.Row]) -> list[str]:
    return [row["name"] for row in rows if row["idle"]]


def _has_work(row: sqlite3.Row) -> bool:
    return any(row[kind] for kind in ("promote", "lost", "done", "dead", "cancelled"))


def _has_old_minute(reader: Reader) -> bool:
    row = reader.row("sweep/oldest_minute")
    oldest = row["minute"] if row else None
    return oldest is not None and oldest < reader.now // 60_000 - MINUTES_KEPT + 1


def _answer(reader: Reader, rows: list[sqlite3.Row]) -> Swept:
    due = min((row["due_at"] for row in rows if row["due_at"] is not None), default=None)
    return Swept(next_due=None if due is None else max(0, due - reader.now), queues=len(rows))
