from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import LIVE, State
from millpond.stores.sqlite.graphs import Endings
from millpond.stores.sqlite.once import keys_of
from millpond.stores.sqlite.transaction import Transaction


def cancel(tx: Transaction, ids: Sequence[str]) -> Sequence[State | None]:
    endings = Endings(tx)
    outcomes = [_cancel(tx, id, endings) for id in ids]
    endings.settle()
    return outcomes


def _cancel(tx: Transaction, id: str, endings: Endings) -> State | None:
    row = tx.row("cancel/look", id=id)
    state: State | None = row["state"] if row else None
    if row is None or state not in LIVE:
        return state
    queue = tx.made_queue(row["queue"])
    leave_key = keys_of(tx, queue, [id])
    endings.look(queue, [id])
    kept = tx.finish(queue, state, "cancelled")
    tx.changes("cancel/cancel" if kept else "cancel/remove", id=id)
    leave_key(id, False)
    endings.ended(id, "cancelled", kept)
    return "cancelled"
