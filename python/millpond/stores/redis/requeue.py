from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import Requeued
from millpond.stores.redis.connection import MOST_CHANGES, Connection
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import to_bytes


def requeue_jobs(connection: Connection, notifier: Notifier, ids: Sequence[str], forget: int | None = None) -> Requeued:
    total, first, left = 0, 0, ids
    while left:
        chunk = left[:MOST_CHANGES]
        came, _, now, late = _step(connection, notifier, None, [] if forget is None else [None, None, None, forget], chunk)
        total, first = total + came, first or now
        left = left[len(chunk) - late :]
    return Requeued(total, first)


def requeue_dead(connection: Connection, notifier: Notifier, queue: str, limit: int, until: int | None = None) -> Requeued:
    total, first, start = 0, None, 0
    while (most := min(MOST_CHANGES, limit - total)) > 0:
        came, stayed, now, late = _step(connection, notifier, queue, [most, start, until or first], [])
        first = first or now
        total, start = total + came, start + stayed
        if came + stayed < most and late == 0:
            break
    return Requeued(total, first or 0)


def _step(
    connection: Connection, notifier: Notifier, queue: str | None, head: Sequence[int | None], ids: Sequence[str]
) -> tuple[int, int, int, int]:
    came, stayed, now, late, *queues = connection.script("requeue", queue, [*head], [to_bytes(id) for id in ids])
    for each in queues:
        notifier.ring("work", each.decode())
    return came, stayed, now, late
