from __future__ import annotations

from millpond.jobs import JobUpdate, UpdateOutcome
from millpond.stores.sqlite.transaction import Transaction, encoded


def update(tx: Transaction, item: JobUpdate) -> UpdateOutcome:
    row = tx.row("update/look", id=item.id)
    if row is None:
        return None
    state: UpdateOutcome = row["state"]
    if state not in ("blocked", "scheduled", "waiting"):
        return state
    due_at = None
    if item.run_at is not None or item.delay is not None:
        due_at = max(tx.now, tx.now + (item.delay or 0) if item.run_at is None else item.run_at)
    if due_at is not None and row["follow_due"] is not None:
        tx.changes("once/postpone", id=item.id, due_at=due_at)
        due_at = None
    if row["line"] is not None and (due_at is not None or item.priority is not None):
        tx.changes("update/leave", id=item.id)
    given = {"id": item.id, "state": state, "due_at": due_at, "priority": item.priority, **encoded(item.data, "data")}
    becomes = tx.value("update/change", **given)
    tx.move(row["queue"], state, becomes, due_in=float("inf") if due_at is None else due_at - tx.now)
    if becomes == "waiting":
        tx.line_up(row["queue"])
    return "updated"
