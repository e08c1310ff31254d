from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgpack

from millpond.jobs import JobUpdate, UpdateOutcome
from millpond.stores.redis.connection import MOST_CHANGES, Connection
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import encoded, to_bytes

UNCHANGED: Final[tuple[UpdateOutcome, ...]] = (None, "running", "done", "dead", "cancelled", None)
"""What the answers of the script mean that are not the name of a queue; the last one is −1."""


def update(connection: Connection, notifier: Notifier, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
    def send(some: Sequence[JobUpdate]) -> list[UpdateOutcome]:
        answers = connection.script("update", None, [], [each for item in some for each in _arguments(item)])
        for queue in {answer.decode() for answer in answers if isinstance(answer, bytes)}:
            notifier.ring("work", queue)
        return [_outcome(answer) for answer in answers]

    return connection.in_chunks(items, send, MOST_CHANGES)


def _outcome(answer: Any) -> UpdateOutcome:
    return "updated" if isinstance(answer, bytes) else UNCHANGED[answer]


def _arguments(item: JobUpdate) -> tuple[bytes, bytes, bytes]:
    return to_bytes(item.id), msgpack.packb([item.priority, item.delay, item.run_at]), encoded(item.data)
