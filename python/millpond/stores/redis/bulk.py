"""One change to all jobs of a state that pass a filter, a step at a time: one partition after another."""

from __future__ import annotations

from typing import Final

from millpond.jobs import BulkChange, BulkStep, JobFilter, State, cursor_fields
from millpond.stores.redis.connection import MOST_ITEMS
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.wire import chosen_by, to_bytes, to_id

MOST_LOOKED_AT: Final = 5000
"""Jobs that a step looks at, in several calls of the script."""
MOST_SAMPLED: Final = 10


def bulk(
    registry: Registry, notifier: Notifier, queue: str, state: State, change: BulkChange, limit: int, after: str | None,
    filter: JobFilter | None, until: int | None,
) -> BulkStep:  # fmt: skip
    parts = registry.look(queue)
    chosen = filter and chosen_by(filter)
    index, *fields = cursor_fields(state, after) if after else ("0",)
    at, last = int(index), fields if len(fields) == 4 else []
    step = BulkStep(0, 0, 0, [], None, 0)
    while at < len(parts) and step.looked < MOST_LOOKED_AT and not 0 < limit <= step.matched:
        place = [True, *map(int, last[:3])] if last else None
        head = [state, MOST_ITEMS, place, chosen, change.kind, limit and limit - step.matched]
        items = [to_bytes(last[3])] if last else []
        looked, matched, changed, now, more, *rest = registry.connection.on_part(
            "bulk", parts[at], [*head, until, change.priority, change.run_at], items
        )
        step.looked, step.matched, step.changed = step.looked + looked, step.matched + matched, step.changed + changed
        step.now = step.now or now
        ids = [to_id(id) for id in rest[3 if more else 0 :]]
        last = [*map(str, rest[:3]), ids.pop(0)] if more else []
        step.sample = [*step.sample, *ids][:MOST_SAMPLED]
        at += 0 if more else 1
    if at < len(parts):
        step.next = ".".join([state, str(at), *(last or ["0"])])
    if step.changed:
        for kind in ("work", "room", "finished", "cancelled"):
            notifier.ring(kind, queue)
    return step
