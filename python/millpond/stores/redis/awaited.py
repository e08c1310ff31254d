"""Links whose parents the store did not know when their children were restored: contract/redis/awaited.lua."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from millpond.stores.redis.connection import Argument, chunks
from millpond.stores.redis.links import ID, Links
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import part_named
from millpond.stores.redis.wire import to_bytes, to_id

MOST_PER_SWEEP: Final = 100
MISSING: Final = 3600
"""Seconds for which a child may be missing: it is stored after its links. No call lasts as long."""
MOST_MISSING: Final = 10_000


class Awaited:
    """`count`: how many there are, as last counted. `missing`: those without a child, and since when sweeps have found it missing."""

    def __init__(self, registry: Registry, links: Links) -> None:
        self._registry, self._links = registry, links
        self.count, self._start = 0, b""
        self.missing: dict[bytes, float] = {}

    def add(self, links: Sequence[bytes]) -> None:
        """Before their children are stored, so that no link is lost."""
        self._ask("add", links)
        self.count += len(links)

    def link_known(self, links: Sequence[bytes]) -> bool:
        """Links children to those of their parents that are known by now. Whether there are any."""
        located = self._registry.locate(to_id(link[:ID]) for link in links)
        homes = {id: part for part, ids in located.items() for id in ids}
        known = [(homes[id], link) for link in links if (id := to_id(link[:ID])) in homes]
        gone = self._links.link(known)
        linked = [link for _, link in known if to_id(link[:ID]) not in gone]
        self._ask("drop", linked)
        return bool(linked)

    def arrived(self, ids: Sequence[str]) -> None:
        """These jobs have come into the store."""
        for some in chunks(ids):
            while (links := self._ask("of", [to_bytes(id) for id in some])) and self.link_known(links):
                pass

    def look(self) -> None:
        """Of a sweep: at some of them, the next ones each time."""
        if self.count:
            links = self._registry.on_keys("awaited", ["all", MOST_PER_SWEEP, self._start])
            self._start = links[-1] if len(links) == MOST_PER_SWEEP else b""
            self.link_known(links)
            self._drop_childless(links)

    def _drop_childless(self, links: Sequence[bytes]) -> None:
        """Whose children are gone, nobody waits for."""
        now, dropped = time.monotonic(), list[bytes]()
        for name in {link[2 * ID :] for link in links}:
            own = [link for link in links if link[2 * ID :] == name]
            items = b"".join(link[ID : 2 * ID] + link[:ID] for link in own)
            linked = self._registry.connection.on_part("linked", part_named(self._registry.prefix, name.decode()), [], [items])
            for link, is_linked in zip(own, linked, strict=True):
                if is_linked:
                    self.missing.pop(link, None)
                elif link in self.missing and now - self.missing[link] >= MISSING:
                    dropped.append(link)
                elif link not in self.missing and len(self.missing) < MOST_MISSING:
                    self.missing[link] = now
        self._ask("drop", dropped)
        for link in dropped:
            self.missing.pop(link)

    def _ask(self, what: str, arguments: Sequence[Argument]) -> list[bytes]:
        return [link for some in chunks(arguments) for link in self._registry.on_keys("awaited", [what, *some])]
