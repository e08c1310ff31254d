from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from millpond.jobs import Requeued
from millpond.stores.sqlite.journal import forget
from millpond.stores.sqlite.once import take_key
from millpond.stores.sqlite.transaction import Transaction


def requeue(
    tx: Transaction, ids: Sequence[str] | None, queue: str, limit: int, until: int | None, forgotten: int | None = None
) -> Requeued:
    """`forgotten`: the number of the first entry that the jobs' journals lose."""
    if ids is None:
        return Requeued(_requeue(tx, tx.rows("requeue/dead", queue=queue, limit=limit, until=until)), tx.now)
    return Requeued(sum(_requeue(tx, tx.rows("requeue/look", id=id), forgotten) for id in ids), tx.now)


def _requeue(tx: Transaction, rows: list[sqlite3.Row], forgotten: int | None = None) -> int:
    back = [row for row in rows if tx.changes("requeue/requeue", id=row["id"])]
    for row in back:
        if forgotten is not None:
            forget(tx, row["id"], forgotten)
        queue = tx.made_queue(row["queue"])
        tx.move(row["queue"], row["state"], "waiting")
        take_key(tx, queue, row["key"])
        tx.line_up(row["queue"])
    return len(back)
