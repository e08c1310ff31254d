from __future__ import annotations

import random

from millpond.jobs import Lost, Swept
from millpond.stores.redis.awaited import Awaited
from millpond.stores.redis.connection import MOST_ITEMS
from millpond.stores.redis.links import Links
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import BUCKETS, Part, named_part, tag_of
from millpond.stores.redis.wire import to_id
from millpond.stores.redis.workers import forget_workers


class Sweep:
    """One sweep. `woken`: queues in which jobs wait now."""

    def __init__(self, registry: Registry, limit: int, links: Links, awaited: Awaited) -> None:
        self._links, self._awaited, self._has_links = links, awaited, False
        self._connection, self._registry, self._limit = registry.connection, registry, limit
        self.swept, self.woken = Swept(), set[str]()
        self._groups = 0

    def run(self) -> None:
        swept, first = self.swept, random.randrange(BUCKETS)
        buckets = [(first + each) % BUCKETS for each in range(BUCKETS)]
        due = dict(zip(buckets, self._due(buckets, self._limit), strict=True))
        for bucket, (_, *names) in due.items():
            for name in names:
                self._sweep_part(named_part(self._registry.prefix, bucket, name.decode()))
        busy = [bucket for bucket, answer in due.items() if len(answer) > 1]
        due |= zip(busy, self._due(busy, 0), strict=True)
        swept.more = self._has_links or self._limit in (swept.promoted, swept.expired, len(swept.lost), self._groups)
        swept.next_due = min((int(answer[0]) for answer in due.values() if int(answer[0]) >= 0), default=None)
        swept.queues, self._awaited.count = forget_workers(self._registry)
        self._awaited.look()

    def _due(self, buckets: list[int], limit: int) -> list[list[bytes]]:
        now = self._connection.now()
        tags = [tag_of(self._registry.prefix, bucket) for bucket in buckets]
        calls = [([f"{tag}:due", f"{tag}:ends"], ["" if now is None else now, limit]) for tag in tags]
        return self._connection.on_many_keys("due", calls) if calls else []

    def _sweep_part(self, part: Part) -> None:
        swept = self.swept
        while True:
            done = (swept.promoted, len(swept.lost), swept.expired, self._groups)
            limits = [min(self._limit - each, MOST_ITEMS) for each in done]
            if not any(limits):
                return
            (promoted, expired, groups, more, *lost), links = self._connection.told("sweep", part, limits)
            if links and not self._has_links:
                self._has_links = self._links.step(part, links)
            for at in range(0, len(lost), 3):
                id, attempt, dead = lost[at : at + 3]
                swept.lost.append(Lost(to_id(id), part.queue, attempt, "dead" if dead else "waiting"))
            swept.promoted += promoted
            swept.expired += expired
            self._groups += groups
            if promoted or 0 in lost[2::3]:
                self.woken.add(part.queue)
            counts = (promoted, len(lost) // 3, expired, groups)
            # `more`: jobs are large, and some were left to another call.
            if not more and not any(0 < count == most for count, most in zip(counts, limits, strict=True)):
                return
