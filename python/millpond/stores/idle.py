"""Queues that nobody uses, for the stores whose clients remember them: contract/operations.md, "sweep"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

IDLE_FOR: Final = 3_600_000
QUEUES_PER_SWEEP: Final = 100


class IdleQueues:
    """Which queues every look of this client has found idle, and since when."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}

    def seen(self, names: Iterable[str], now: int) -> None:
        self._since = {name: self._since.get(name, now) for name in names}

    def long(self, now: int) -> list[str]:
        return [name for name, since in self._since.items() if now - since >= IDLE_FOR][:QUEUES_PER_SWEEP]
