from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from typing import Final

from millpond.jobs import Lost, Swept
from millpond.stores.idle import QUEUES_PER_SWEEP
from millpond.stores.redis.push import MOST_ITEMS
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import BUCKETS, Part, named_part, tag_of
from millpond.stores.redis.wire import to_id

Work = Callable[[str], None]


class Sweep:
    """One sweep. `promoted_in`: queues in which jobs wait now."""

    def __init__(self, registry: Registry, prefix: str, limit: int) -> None:
        self._connection, self._registry = registry.connection, registry
        self._prefix, self._limit = prefix, limit
        self.swept = Swept()
        self.woken: set[str] = set()
        self._next_due: list[int] = []
        self._idle: set[str] = set()

    def run(self) -> Swept:
        first = random.randrange(BUCKETS)
        buckets = [(first + each) % BUCKETS for each in range(BUCKETS)]
        busy: list[int] = []
        for bucket, (due, *names) in zip(buckets, self._due(buckets, self._limit), strict=True):
            if not names:
                self._note(due)
                continue
            busy.append(bucket)
            for name in names:
                self._sweep_part(named_part(self._prefix, bucket, name.decode()))
        for (due,) in self._due(busy, 0):
            self._note(due)
        for queue in list(self._idle)[:QUEUES_PER_SWEEP]:
            self._remove(queue)
        self.swept.more = self._limit in (self.swept.promoted, self.swept.expired, len(self.swept.lost))
        self.swept.next_due = min(self._next_due, default=None)
        self.swept.queues = self._connection.command("HLEN", self._registry.keys[0])
        return self.swept

    def _due(self, buckets: list[int], limit: int) -> list[list[bytes]]:
        now = self._connection.now()
        calls = []
        for bucket in buckets:
            tag = tag_of(self._prefix, bucket)
            calls.append(([f"{tag}:due", f"{tag}:ends"], ["" if now is None else now, limit]))
        return self._connection.on_many_keys("due", calls) if calls else []

    def _note(self, due: int | bytes) -> None:
        if int(due) >= 0:
            self._next_due.append(int(due))

    def _sweep_part(self, part: Part) -> None:
        swept = self.swept
        while True:
            left = (self._limit - swept.promoted, self._limit - len(swept.lost), self._limit - swept.expired)
            limits = [min(each, MOST_ITEMS) for each in left]
            if not any(limits):
                return
            promoted, expired, idle, *lost = self._connection.on_part("sweep", part, limits)
            for at in range(0, len(lost), 3):
                id, attempt, dead = lost[at : at + 3]
                swept.lost.append(Lost(to_id(id), part.queue, attempt, "dead" if dead else "waiting"))
            swept.promoted += promoted
            swept.expired += expired
            if idle:
                self._idle.add(part.queue)
            counts = (promoted, len(lost) // 3, expired)
            if promoted or 0 in lost[2::3]:
                self.woken.add(part.queue)
            if not any(count > 0 and count == most for count, most in zip(counts, limits, strict=True)):
                return

    def _remove(self, queue: str) -> None:
        """A queue that nobody has used for an hour."""
        self._registry.forget(queue)
        parts, token = self._registry.parts(queue), secrets.token_hex(8)

        def step(number: int) -> list[bytes]:
            items = (queue, len(parts), token, number)
            answer: list[bytes] = self._connection.on_keys("unregister", self._registry.keys, items)
            return answer

        floor = step(0)
        if not floor:
            return
        gone = all([self._connection.on_part("remove", part, [int(floor[0])])[0] for part in parts])
        step(1 if gone else 2)
        self._registry.forget(queue)
