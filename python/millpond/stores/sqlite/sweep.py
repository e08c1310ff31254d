from __future__ import annotations

import sqlite3

from millpond.jobs import FINAL, Lost, Swept
from millpond.once import NEVER
from millpond.schedules import DueSchedules
from millpond.stores.sqlite.graphs import Endings, expiring, look_at_held, settle_rest, shrink
from millpond.stores.sqlite.once import keys_of
from millpond.stores.sqlite.schedules import due_schedules
from millpond.stores.sqlite.transaction import Transaction


def sweep(tx: Transaction, limit: int) -> Swept:
    more_links, endings = settle_rest(tx), Endings(tx)
    swept, forgotten, rows = Swept(), 0, tx.rows("sweep/look")
    busy = [row for row in rows if row["busy"]]
    for row in busy:
        if row["forget"]:
            forgotten += tx.changes("limits/forget", queue=row["name"], limit=limit - forgotten)
        _sweep_queue(tx, row, limit, swept, endings)
    look_at_held(tx, endings)
    endings.settle()
    if tx.row("sweep/old_minutes"):
        tx.changes("sweep/add_up_minutes")
        tx.changes("sweep/forget_minutes")
    if tx.row("once/over"):
        forgotten += tx.changes("once/expire", limit=limit - forgotten)
    if tx.row("workers/silent"):
        tx.changes("workers/forget")
    if busy:
        rows = tx.rows("sweep/look")
    due = [row["due_at"] for row in rows if row["due_at"] is not None and row["due_at"] < NEVER]
    swept.next_due = max(0, min(due) - tx.now) if due else None
    schedules, next_at = due_schedules(tx)
    if next_at is not None:
        swept.next_due = min(next_at - tx.now, next_at if swept.next_due is None else swept.next_due)
    if schedules:
        swept.schedules = DueSchedules(tx.now, schedules)
    swept.queues = len(rows)
    swept.more = more_links or limit in (swept.promoted, len(swept.lost), swept.expired, forgotten)
    return swept


def _sweep_queue(tx: Transaction, row: sqlite3.Row, limit: int, swept: Swept, endings: Endings) -> None:
    name = row["name"]
    if row["emptied"]:
        tx.reread()
        tx.changes("sweep/recount", queue=name)
        tx.changes("graphs/unfounded")
        tx.changes("graphs/unfounded_gone")
        shrink(tx)
    queue = tx.made_queue(name)
    if row["promote"]:
        promoted = tx.changes("sweep/promote", queue=name, limit=limit - swept.promoted)
        tx.move(name, "scheduled", "waiting", promoted)
        swept.promoted += promoted
    if row["line_up"] or row["promote"]:
        tx.line_up(name)
    if row["ahead"]:
        tx.changes("sweep/set_back", queue=name, limit=limit)
    for lost in tx.rows("sweep/lost", queue=name, limit=limit - len(swept.lost)) if row["lost"] else []:
        swept.lost.append(Lost(lost["id"], name, lost["attempt"], lost["state"]))
        tx.count(name, "total", "lost")
        if lost["state"] == "waiting":
            tx.move(name, "running", "waiting")
            continue
        keys_of(tx, queue, [lost["id"]])(lost["id"], True)
        endings.look(queue, [lost["id"]])
        kept = tx.finish(queue, "running", "dead")
        endings.ended(lost["id"], "dead", kept)
        if not kept:
            tx.changes("sweep/remove", id=lost["id"])
    for state in FINAL:
        if row[state]:
            left = limit - swept.expired
            held = expiring(tx, queue, state, left, endings)
            expired = held + tx.changes("sweep/expire", queue=name, state=state, limit=left - held)
            tx.move(name, state, None, expired)
            swept.expired += expired
