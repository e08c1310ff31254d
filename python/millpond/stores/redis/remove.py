from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

from millpond.jobs import STATES, Removed, State
from millpond.stores.redis.connection import MOST_ITEMS
from millpond.stores.redis.find import ask
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part

WAITED: Final = 2
RAN: Final = 3
NOTHING: Final = 1
SETTINGS: Final = 3
"""What `drop` finds where it only looks."""


def remove_jobs(registry: Registry, notifier: Notifier, ids: Sequence[str]) -> Removed:
    removed = 0
    for part, chunk, answer in ask(registry, "remove", ids):
        removed += len(answer) - answer.count(0)
        live = [id for id, outcome in zip(chunk, answer, strict=True) if outcome in (WAITED, RAN)]
        notifier.ring_jobs("cancelled", part.queue, live)
        notifier.ring_jobs("finished", part.queue, live)
        if live:
            notifier.ring("room", part.queue)
    return Removed(removed, False)


def remove_of(registry: Registry, notifier: Notifier, queue: str, state: State | None, limit: int) -> Removed:
    parts, removed = registry.look(queue), 0
    for each in STATES if state is None else (state,):
        for part in parts:
            removed += _remove(registry, notifier, part, each, limit - removed)
        if removed >= limit:
            return Removed(removed, True)
    return Removed(removed, state is None and not _remove_queue(registry, queue, parts))


def _remove(registry: Registry, notifier: Notifier, part: Part, state: State, limit: int) -> int:
    removed = 0
    while removed < limit:
        answer = registry.connection.on_part("remove", part, [state, min(limit - removed, MOST_ITEMS)])
        if not answer:
            break
        removed += len(answer)
        if answer[0] in (WAITED, RAN):
            for kind in ("cancelled", "finished", "room"):
                notifier.ring(kind, part.queue)
    return removed


def _remove_queue(registry: Registry, queue: str, parts: Sequence[Part]) -> bool:
    """A queue without jobs: by the steps of contract/redis/unregister.lua. False: call again."""
    token, least = secrets.token_hex(8), 0

    def step(number: int) -> Any:
        return registry.on_keys("unregister", [queue, len(parts), token, number, least])

    def drop(floor: int | None) -> list[list[Any]]:
        return [registry.connection.on_part("drop", part, [floor]) for part in parts]

    while floor := step(0):
        found = drop(int(floor[0]))
        least = max((int(each[1]) for each in found if len(each) > 1), default=0)
        if any(each[0] == 0 for each in found):
            step(2)
            return False
        if least == 0:
            break
    else:
        return True
    step(0)
    left = [each[0] for each in drop(None)]
    registry.known.pop(queue, None)
    step(1 if set(left) == {NOTHING} else 2)
    return not (NOTHING in left and SETTINGS in left)
