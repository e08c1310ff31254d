from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import Requeued
from millpond.stores.sqlite.graphs import block_again
from millpond.stores.sqlite.journal import forget
from millpond.stores.sqlite.once import take_key
from millpond.stores.sqlite.transaction import Transaction


def requeue(
    tx: Transaction, ids: Sequence[str] | None, queue: str, limit: int, until: int | None, forgotten: int | None = None
) -> Requeued:
    """`forgotten`: the number of the first entry that the jobs' journals lose."""
    if ids is None:
        rows = tx.rows("requeue/dead", queue=queue, limit=limit, until=until)
    else:
        rows = [row for id in ids for row in tx.rows("requeue/look", id=id)]
    back = [row for row in rows if tx.changes("requeue/requeue", id=row["id"])]
    for row in back:
        if forgotten is not None:
            forget(tx, row["id"], forgotten)
        tx.move(row["queue"], row["state"], "waiting")
        take_key(tx, tx.made_queue(row["queue"]), row["key"])
    block_again(tx, [row["seq"] for row in back if tx.made_queue(row["queue"]).uses_graphs])
    for name in dict.fromkeys(row["queue"] for row in back):
        tx.line_up(name)
    return Requeued(len(back), tx.now)
