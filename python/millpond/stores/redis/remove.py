from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.jobs import STATES, Removed, State
from millpond.stores.redis.connection import MOST_CHANGES, Connection
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import to_bytes


def remove_jobs(connection: Connection, notifier: Notifier, ids: Sequence[str]) -> Removed:
    def send(some: Sequence[str]) -> list[Any]:
        answers: list[Any] = connection.script("remove", None, [], [to_bytes(id) for id in some])
        for id, answer in zip(some, answers):
            if isinstance(answer, list):
                queue = answer[1].decode()
                notifier.ring("cancelled", queue, (id,))
                notifier.ring("finished", queue, (id,))
                notifier.ring("room", queue)
        return answers

    answers = connection.in_chunks([*dict.fromkeys(ids)], send, MOST_CHANGES)
    return Removed(sum(answer != 0 for answer in answers), False)


def remove_of(connection: Connection, notifier: Notifier, queue: str, state: State | None, limit: int) -> Removed:
    """In steps: each removes some jobs, and the last one the queue."""
    removed, more = 0, True
    while more and removed < limit:
        states = list(STATES) if state is None else [state]
        head = [states, min(limit - removed, MOST_CHANGES), state is None]
        count, is_more, stopped = connection.script("remove", queue, head)
        removed, more = removed + count, is_more == 1
        for kind in ("room", "cancelled", "finished") if stopped else ():
            notifier.ring(kind, queue)
    return Removed(removed, more)
