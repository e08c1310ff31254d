"""Links whose parents the store did not know when their children were restored: contract/redis/awaited.lua."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millpond.stores.redis.connection import Argument, chunks
from millpond.stores.redis.links import ID, Links
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.wire import to_bytes, to_id

MOST_PER_SWEEP: Final = 100


class Awaited:
    """`count`: how many there are, as last counted."""

    def __init__(self, registry: Registry, links: Links) -> None:
        self._registry, self._links = registry, links
        self.count, self._start = 0, b""

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

    def _ask(self, what: str, arguments: Sequence[Argument]) -> list[bytes]:
        return [link for some in chunks(arguments) for link in self._registry.on_keys("awaited", [what, *some])]
