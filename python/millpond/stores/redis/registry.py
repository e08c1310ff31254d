"""Which queues there are, and how many partitions each has: contract/redis/README.md, "The registry"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from millpond.errors import MillpondError
from millpond.stores.redis.connection import Argument, Connection, chunks, script
from millpond.stores.redis.routing import Part, part_of, shared_key
from millpond.stores.redis.wire import to_bytes

MOST_KEYS: Final = 250
MOST_LOOKS: Final = 5_000


class Registry:
    """`known`: partitions of queues that this client registered or looked up. May be out of date."""

    def __init__(self, connection: Connection, prefix: str, partitions: int) -> None:
        self.connection, self.prefix, self._own = connection, prefix, partitions
        self._queues = shared_key(prefix, "queues")
        self.known: dict[str, int] = {}
        self.confirmed = 0
        """How often a partition was found not to be listed."""

    def on_keys(self, name: str, arguments: Sequence[Argument]) -> Any:
        """Calls a script whose keys all queues share."""
        keys = [shared_key(self.prefix, key) for key in script(name).keys]
        return self.connection.on_keys(name, keys, arguments)

    def register(self, queue: str, stored: bool = False) -> int:
        """The answer is the floor, for one push at once. `stored`: something of the queue is stored already."""
        wanted = self.known.get(queue, self._own)
        told = self.on_keys("register", [queue, wanted, int(stored)])
        if not told:
            raise _newer(self.prefix)
        partitions, floor = told
        self.known[queue] = partitions
        return int(floor)

    def check_version(self) -> None:
        """The client must not go on where the data are of a newer version than its scripts."""
        version, known = self.on_keys("opened", [])
        if version > known:
            raise _newer(self.prefix)

    def confirm(self, part: Part) -> None:
        """A script has answered that the partition is not listed."""
        before = self.known.get(part.queue)
        self.register(part.queue, stored=True)
        if self.known[part.queue] != before:
            raise MillpondError("StoreFailed", f"the queue {part.queue} was made anew with other partitions meanwhile")
        self.note_listed(part)
        self.confirmed += 1

    def note_listed(self, part: Part) -> None:
        self.connection.on_part("listed", part, [self.known[part.queue]])

    def look(self, queue: str) -> list[Part]:
        """As the registry has them now."""
        self.known.pop(queue, None)
        return self.parts(queue)

    def parts(self, queue: str) -> list[Part]:
        """The queue's partitions, without registering it."""
        if queue not in self.known and (told := self.connection.command("HGET", self._queues, queue)) is not None:
            self.known[queue] = _number(told)
        return self._parts(queue, self.known.get(queue, self._own))

    def has_lost(self, queue: str) -> bool:
        """Whether the server has lost what it knew of a queue of which a partition is not listed. Else the queue was removed."""
        if self.connection.command("HGET", self._queues, queue) is not None:
            return True
        return self.connection.command("GET", shared_key(self.prefix, "floor")) is None

    def all(self) -> dict[str, int]:
        told: Any = self.connection.command("HGETALL", self._queues)
        pairs = told.items() if isinstance(told, dict) else zip(told[::2], told[1::2], strict=True)
        return {queue.decode(): _number(count) for queue, count in pairs}

    def locate(self, ids: Iterable[str]) -> dict[Part, list[str]]:
        """The ids that are known, by partition."""
        places: dict[Part, list[str]] = {}
        left = list(dict.fromkeys(ids))
        parts = sorted((part for named in self.all().items() for part in self._parts(*named)), key=_bucket)
        for _, bucket in groupby(parts, key=_bucket):
            for some in chunks(list(bucket), MOST_KEYS):
                for chunk in chunks(left, max(1, MOST_LOOKS // len(some))):
                    keys, items = [part.key("jobs") for part in some], [to_bytes(id) for id in chunk]
                    for id, number in zip(chunk, self.connection.on_keys("locate", keys, items), strict=True):
                        if number:
                            places.setdefault(some[number - 1], []).append(id)
            found = {id for known in places.values() for id in known}
            left = [id for id in left if id not in found]
        return places

    def _parts(self, queue: str, count: int) -> list[Part]:
        return [part_of(self.prefix, queue, index) for index in range(count)]


def _newer(prefix: str) -> MillpondError:
    message = f"the keys under the prefix {prefix} were made by a newer version of Millpond: upgrade this one"
    return MillpondError("StoreVersion", message)


def group_by_part(pairs: Iterable[tuple[Part, int]]) -> dict[Part, Sequence[int]]:
    found: dict[Part, list[int]] = {}
    for part, at in pairs:
        found.setdefault(part, []).append(at)
    return dict(found)


def _bucket(part: Part) -> int:
    return part.bucket


def _number(told: bytes) -> int:
    # Behind a space there may be the token of a client that is about to remove the queue.
    return int(told.split(b" ")[0])
