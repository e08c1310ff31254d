"""Which queues there are, and how many partitions each has: contract/redis/README.md, "The registry"."""

from __future__ import annotations

from typing import Any

from millpond.errors import MillpondError
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.routing import Part, part_of, shared_key


class Registry:
    def __init__(self, connection: Connection, prefix: str, partitions: int) -> None:
        self.connection, self._prefix, self._own = connection, prefix, partitions
        self.keys = [shared_key(prefix, "queues"), shared_key(prefix, "floor")]
        self.known: dict[str, int] = {}
        """Partitions of queues that this client registered or looked up. May be out of date."""

    def register(self, queue: str) -> int:
        """The answer is the floor, for one push at once."""
        partitions, floor = self.connection.on_keys("register", self.keys, [queue, self._own])
        self.known[queue] = partitions
        return int(floor)

    def confirm(self, part: Part) -> None:
        """A script has answered that the partition is not listed."""
        before = self.known.get(part.queue)
        self.register(part.queue)
        if self.known[part.queue] != before:
            raise MillpondError("StoreFailed", f"the queue {part.queue} was made anew with other partitions meanwhile")
        self.connection.on_part("listed", part)

    def parts(self, queue: str) -> list[Part]:
        """The queue's partitions, without registering it."""
        count = self.known.get(queue)
        if count is None:
            told = self.connection.command("HGET", self.keys[0], queue)
            if told is not None:
                self.known[queue] = _number(told)
            count = self.known.get(queue, self._own)
        return self._parts(queue, count)

    def exists(self, queue: str) -> bool:
        return bool(self.connection.command("HEXISTS", self.keys[0], queue))

    def all_parts(self) -> list[Part]:
        return [part for queue, count in self.all().items() for part in self._parts(queue, count)]

    def all(self) -> dict[str, int]:
        told: Any = self.connection.command("HGETALL", self.keys[0])
        pairs = told.items() if isinstance(told, dict) else zip(told[::2], told[1::2], strict=True)
        return {queue.decode(): _number(count) for queue, count in pairs}

    def forget(self, queue: str) -> None:
        self.known.pop(queue, None)

    def _parts(self, queue: str, count: int) -> list[Part]:
        return [part_of(self._prefix, queue, index) for index in range(count)]


def _number(told: bytes) -> int:
    # Behind a space there may be the token of a client that is about to remove the queue.
    return int(told.split(b" ")[0])
