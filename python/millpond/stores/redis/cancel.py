from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from millpond.jobs import FINAL, State
from millpond.stores.redis.connection import MOST_CHANGES, Connection
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import to_bytes

WAITED: Final = 3
STATES: Final[tuple[State | None, ...]] = (*FINAL, None)
"""What the answers of the script mean of jobs that it has not cancelled; the last one is −1."""


def cancel(connection: Connection, notifier: Notifier, ids: Sequence[str]) -> Sequence[State | None]:
    def send(some: Sequence[str]) -> list[State | None]:
        answers = connection.script("cancel", None, [], [to_bytes(id) for id in some])
        return [_told(notifier, id, answer) for id, answer in zip(some, answers)]

    return connection.in_chunks(ids, send, MOST_CHANGES)


def _told(notifier: Notifier, id: str, answer: Any) -> State | None:
    if not isinstance(answer, list):
        return STATES[int(answer)]
    how, queue = answer[0], answer[1].decode()
    notifier.ring("cancelled", queue, (id,))
    notifier.ring("finished", queue, (id,))
    if how == WAITED:
        notifier.ring("room", queue)
    return "cancelled"
