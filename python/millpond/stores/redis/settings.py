"""Settings of queues. Each partition keeps them; a client keeps what it has made, in case the server loses it."""

from __future__ import annotations

from typing import Final

import msgpack

from millpond.backoff import Backoff
from millpond.errors import MillpondError
from millpond.jobs import Settings
from millpond.stores.redis.connection import Argument
from millpond.stores.redis.registry import Registry

NAMES: Final = {"keep_done": "keepDone", "keep_dead": "keepDead"}
DEFAULTS: Final[Settings] = {
    "capacity": None, "keep_done": 3_600_000, "keep_dead": 604_800_000, "paused": False, "attempts": 10,
    "backoff": Backoff(), "lease": 30_000, "timeout": None,
}  # fmt: skip


class QueueSettings:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: dict[str, Settings] = {}

    def configure(self, queue: str, settings: Settings) -> None:
        self._apply(queue, settings)
        self._made[queue] = {**self._made.get(queue, {}), **settings}

    def restore(self, queue: str) -> None:
        """The server may have lost the queue's settings."""
        made = self._made.get(queue, {})
        if {**DEFAULTS, **made} != DEFAULTS:
            self._apply(queue, made)

    def _apply(self, queue: str, settings: Settings) -> None:
        self._registry.register(queue)
        parts, capacity = self._registry.parts(queue), settings.get("capacity")
        if capacity is not None and capacity < len(parts):
            raise MillpondError("InvalidOption", f"the queue has {len(parts)} partitions; its capacity is at least that")
        for part in parts:
            share = None if capacity is None else (capacity + len(parts) - 1 - part.index) // len(parts)
            if not self._registry.connection.on_part("configure", part, [], _items(settings, share))[0]:
                self._registry.confirm(part)


def _items(settings: Settings, share: int | None) -> list[Argument]:
    items: list[Argument] = []
    for name, value in settings.items():
        if isinstance(value, Backoff):
            value = [value.base, value.factor, value.max, value.jitter]
        items += [NAMES.get(name, name), msgpack.packb(share if name == "capacity" else value)]
    return items
