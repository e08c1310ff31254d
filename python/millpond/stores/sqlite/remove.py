from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from millpond.jobs import FINAL, LIVE, STATES, Removed, State
from millpond.stores.sqlite.graphs import Endings
from millpond.stores.sqlite.once import keys_of
from millpond.stores.sqlite.transaction import Transaction


def remove(tx: Transaction, ids: Sequence[str] | None, queue: str, state: State | None, limit: int) -> Removed:
    if ids is not None:
        return Removed(_remove(tx, [row for id in ids for row in tx.rows("remove/look", id=id)]), False)
    removed = 0
    for each in STATES if state is None else (state,):
        statement = "final" if each in FINAL else each
        rows = tx.rows(f"remove/{statement}", queue=queue, state=each, limit=limit - removed)
        removed += _remove(tx, rows)
        if removed >= limit:
            return Removed(removed, True)
    if state is None:
        removed += _remove(tx, tx.rows("graphs/held_of", queue=queue, limit=limit - removed))
        if removed >= limit:
            return Removed(removed, True)
        tx.reread()
        if tx.changes("remove/queue", queue=queue) > 0:
            tx.changes("remove/removals")
            tx.changes("once/forget_all", queue=queue)
    return Removed(removed, False)


def _remove(tx: Transaction, rows: Sequence[sqlite3.Row]) -> int:
    removed, endings = [], Endings(tx)
    for row in rows:
        leave_key = keys_of(tx, tx.made_queue(row["queue"]), [row["id"]])
        endings.look(tx.made_queue(row["queue"]), [row["id"]])
        if was := tx.row("remove/remove", id=row["id"]):
            if was["held"]:
                tx.changes("graphs/unhold", seq=was["seq"])
            else:
                tx.remove(row["queue"], was["state"])
            leave_key(row["id"], False)
            endings.removed(row["id"], was["state"] in LIVE)
            removed.append(row)
    endings.settle()
    if highest := max((row["fence"] for row in removed), default=0):
        tx.changes("remove/fence", fence=highest)
    return len(removed)
