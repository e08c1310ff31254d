"""The stores under test, and the clock that they are given."""

from __future__ import annotations

from dataclasses import dataclass

from millpond.store import Store

STORES = ("sqlite",)


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


@dataclass
class Opened:
    store: Store
    clock: Clock
