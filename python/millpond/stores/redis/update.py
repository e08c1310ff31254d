from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgpack

from millpond.jobs import JobUpdate, UpdateOutcome
from millpond.stores.redis.connection import MOST_ITEMS
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.wire import encoded, to_bytes

OUTCOMES: Final[tuple[UpdateOutcome, ...]] = ("updated", "running", "done", "dead", "cancelled", None)
"""What the answers of the script mean; the last one is −1."""


def update(registry: Registry, notifier: Notifier, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
    outcomes: dict[int, UpdateOutcome] = {}
    for part, known in registry.locate(item.id for item in items).items():
        here = set(known)
        left = [at for at, item in enumerate(items) if item.id in here]
        while left:
            chunk = left[:MOST_ITEMS]
            arguments = [each for at in chunk for each in _arguments(items[at])]
            answer = registry.connection.on_part("update", part, [], arguments)
            outcomes |= {at: OUTCOMES[outcome] for at, outcome in zip(chunk, answer)}
            # Where jobs are large, the last ones have no answer, and are sent again.
            left = left[len(answer) :]
        notifier.ring("work", part.queue)
    return [outcomes.get(at) for at in range(len(items))]


def _arguments(item: JobUpdate) -> tuple[bytes, bytes, bytes]:
    return to_bytes(item.id), msgpack.packb([item.priority, item.delay, item.run_at]), encoded(item.data)
