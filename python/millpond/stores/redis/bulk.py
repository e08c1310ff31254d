"""One change to all jobs of a state that pass a filter, a step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millpond.jobs import BulkChange, BulkStep, JobFilter, State, cursor_fields
from millpond.stores.redis.connection import MOST_CHANGES, MOST_ITEMS, Connection
from millpond.stores.redis.list import beyond
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import chosen_by, to_id

MOST_LOOKED_AT: Final = 5000
"""Jobs that a step looks at, in several calls of the script."""
MOST_SAMPLED: Final = 10


def bulk(
    connection: Connection, notifier: Notifier, queue: str, state: State, change: BulkChange, limit: int, after: str | None,
    filter: JobFilter | None, until: int | None,
) -> BulkStep:  # fmt: skip
    chosen = filter and chosen_by(filter)
    last: Sequence[str] | None = cursor_fields(state, after) if after else None
    step = BulkStep(0, 0, 0, [], None, 0)
    goes_on = True
    while goes_on and step.looked < MOST_LOOKED_AT and not 0 < limit <= step.matched:
        place, items = beyond(last)
        most = limit and min(limit - step.matched, MOST_CHANGES)
        head = [state, MOST_ITEMS, place, chosen, change.kind, most, until, change.priority, change.run_at]
        looked, matched, changed, now, more, *rest = connection.script("bulk", queue, head, items)
        step.looked, step.matched, step.changed = step.looked + looked, step.matched + matched, step.changed + changed
        step.now = step.now or now
        goes_on = more == 1
        ids = [to_id(id) for id in rest[3 if goes_on else 0 :]]
        last = [*map(str, rest[:3]), ids.pop(0)] if goes_on else None
        step.sample = [*step.sample, *ids][:MOST_SAMPLED]
    if last:
        step.next = ".".join([state, *last])
    if step.changed:
        for kind in ("work", "room", "finished", "cancelled"):
            notifier.ring(kind, queue)
    return step
