"""Links between jobs of different partitions: contract/redis/README.md, "Links". A script that ends a job tells of its children; each of
these is then told in its own partition, and at last the ended job's partition that this is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from millpond.contract import DEFAULTS
from millpond.errors import MillpondError
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, part_named
from millpond.stores.redis.wire import to_bytes, to_id

STEP: Final = DEFAULTS["graph"]["step"]
"""Links that one call settles."""
ENDS: Final = 4
"""How a parent can have ended: done, dead, cancelled, removed."""
ID: Final = 16


def link_of(parent: str, child: str, part: Part) -> bytes:
    """The parent, the child and the child's part."""
    return to_bytes(parent) + to_bytes(child) + part.name.encode()


class Links:
    def __init__(self, registry: Registry, notifier: Notifier) -> None:
        self._registry, self._notifier, self._connection = registry, notifier, registry.connection

    def settle(self, part: Part, told: Sequence[Any]) -> None:
        """What a script of the partition has told. What cannot be settled now, a sweep settles."""
        with suppress(MillpondError):
            self.step(part, told)

    def step(self, part: Part, told: Sequence[Any]) -> bool:
        """Settles up to so many links, with what follows from that. Whether some are left."""
        line, budget, is_left = [(part, told)], STEP, False
        while line:
            if budget <= 0:
                return True
            home, members = line.pop(0)
            for member in members:
                if member[0] == b"graph":
                    self.finish(home, member[1], member[2].decode())
                else:
                    budget -= len(member) - 3
                    is_left = is_left or bool(member[2])
            line += self._settle(home, [member for member in members if member[0] != b"graph"])
        # A script tells of so many links at most.
        return is_left or budget <= 0

    def _settle(self, home: Part, members: Sequence[Sequence[Any]]) -> list[tuple[Part, Sequence[Any]]]:
        by_part: dict[bytes, list[bytes]] = {}
        for name, score, _, *links in members:
            end = str(int(float(score)) % ENDS).encode()
            for link in links:
                by_part.setdefault(link[ID:], []).append(link[:ID] + name[:ID] + end)
        further: list[tuple[Part, Sequence[Any]]] = []
        for name, items in by_part.items():
            part = part_named(self._registry.prefix, name.decode())
            if told := [each for some in chunks(items) for each in self._settle_in(part, some)]:
                further.append((part, told))
        if members:
            settled = [each for name, score, start, *_ in members for each in (name, score, start)]
            self._connection.on_part("settled", home, [], settled)
        return further

    def _settle_in(self, part: Part, items: Sequence[bytes]) -> list[Any]:
        told: list[Any] = []
        items = sorted(items)
        while items:
            (done, released, *cancelled), links = self._connection.told("settle", part, [], [b"".join(items)])
            told += links
            if released:
                self._notifier.ring("work", part.queue)
            self._notifier.ring_jobs("finished", part.queue, [to_id(id) for id in cancelled])
            if cancelled:
                self._notifier.ring("room", part.queue)
            items = items[done:] if done else []
        return told

    def decide(self, graph: bytes, home: str, wish: str) -> bool:
        """Whether a graph starts, as was decided now or before."""
        (decided,) = self._connection.on_keys("decide", [self._decision(graph, home)], [wish])
        return bool(decided == b"committed")

    def forget(self, graph: bytes, home: str) -> None:
        """All of its jobs have started."""
        with suppress(MillpondError):
            self._connection.command("DEL", self._decision(graph, home))

    def _decision(self, graph: bytes, home: str) -> str:
        return part_named(self._registry.prefix, home).key(f"graph:{graph.hex()}")

    def finish(self, part: Part, graph: bytes, home: str) -> None:
        """What a client began that is no more. `home`: where it is decided; empty: it is, and its jobs are being started."""
        self.finish_in(part, graph, not home or self.decide(graph, home, "aborted"))

    def finish_in(self, part: Part, graph: bytes, is_committed: bool) -> None:
        """Starts or removes the jobs of a graph in a partition."""
        left = 1
        while left:
            (left,) = self._connection.on_part("decided", part, [is_committed, STEP], [graph])
        if is_committed:
            self._notifier.ring("work", part.queue)

    def link(self, links: Iterable[tuple[Part, bytes]], graph: bytes = b"") -> set[str]:
        """Links to parents in their partitions; `graph`: the caller's own. What other graphs that are not decided have there may come to nothing:
        they are decided. The answer is the parents that are unknown there, or were not decided."""
        by_part: dict[Part, list[bytes]] = {}
        for home, link in links:
            by_part.setdefault(home, []).append(link)
        unknown = set()
        for home, own in by_part.items():
            for some in chunks(own):
                parts = [link[2 * ID :].decode() for link in some]
                answer = self._connection.on_part("link", home, [parts], [b"".join(link[: 2 * ID] for link in some), graph])
                unknown |= {to_id(link[:ID]) for link, outcome in zip(some, answer, strict=True) if outcome}
                for held, decides in {(each[1], each[2]) for each in answer if isinstance(each, list)}:
                    self.finish(home, held, decides.decode())
        return unknown

    def adopt(self, within: str, pairs: Sequence[tuple[str, bytes]], only_look: bool) -> list[bool]:
        """Lets children (and their parts) wait for further jobs, or looks whether they could: of each, whether it waits for `within`."""
        waits = [False] * len(pairs)
        for name in {link[ID:] for _, link in pairs}:
            part, own = part_named(self._registry.prefix, name.decode()), [at for at, (_, link) in enumerate(pairs) if link[ID:] == name]
            for some in chunks(own):
                items = b"".join(pairs[at][1][:ID] + to_bytes(within) + to_bytes(pairs[at][0]) for at in some)
                for at, outcome in zip(some, self._connection.on_part("adopt", part, [only_look], [items]), strict=True):
                    waits[at] = outcome == 0
        return waits
