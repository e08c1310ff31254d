from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import Requeued
from millpond.stores.redis.connection import MOST_ITEMS
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part
from millpond.stores.redis.wire import to_bytes


def requeue_jobs(registry: Registry, notifier: Notifier, ids: Sequence[str]) -> Requeued:
    located = registry.locate(ids).items()
    total, first = 0, 0
    for part, known in located:
        left: Sequence[str] = known
        while left:
            chunk = left[:MOST_ITEMS]
            came, _, now, late = _requeue(registry, notifier, part, [0, 0], chunk)
            total, first = total + came, max(first, now)
            left = left[len(chunk) - late :]
    return Requeued(total, first)


def requeue_dead(registry: Registry, notifier: Notifier, queue: str, limit: int, until: int | None = None) -> Requeued:
    total, first = 0, None
    for part in registry.look(queue):
        start = 0
        while (most := min(MOST_ITEMS, limit - total)) > 0:
            came, stayed, now, late = _requeue(registry, notifier, part, [most, start, until or first], [])
            first = first or now
            total += came
            start += stayed
            if came + stayed < most and late == 0:
                break
    return Requeued(total, first or 0)


def _requeue(
    registry: Registry, notifier: Notifier, part: Part, head: Sequence[int | None], ids: Sequence[str]
) -> tuple[int, int, int, int]:
    came, stayed, now, late = registry.connection.on_part("requeue", part, [*head], [to_bytes(id) for id in ids])
    if came:
        notifier.ring("work", part.queue)
    return came, stayed, now, late
