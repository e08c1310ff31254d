from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millpond.jobs import FINAL, State
from millpond.stores.redis.find import ask
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry

WAITED: Final = 3
RAN: Final = 4
STATES: Final[tuple[State | None, ...]] = (*FINAL, "cancelled", "cancelled", None)
"""What the answers of the script mean; the last one is −1."""


def cancel(registry: Registry, notifier: Notifier, ids: Sequence[str]) -> Sequence[State | None]:
    states: dict[str, State | None] = {}
    for part, chunk, answer in ask(registry, "cancel", ids):
        told = dict(zip(chunk, answer, strict=True))
        states |= {id: STATES[outcome] for id, outcome in told.items()}
        notifier.ring_jobs("cancelled", part.queue, [id for id in told if told[id] == RAN])
        notifier.ring_jobs("finished", part.queue, [id for id in told if told[id] in (WAITED, RAN)])
        if WAITED in answer:
            notifier.ring("room", part.queue)
    return [states.get(id) for id in ids]
