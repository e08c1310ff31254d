from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from millpond.jobs import Relatives
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.links import ID
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, part_named
from millpond.stores.redis.wire import to_bytes, to_id

MOST_LINKS: Final = 1000
"""Links that one call answers of each job."""
MOST_JOBS: Final = 20
IDS_AT: Final = 20


@dataclass(frozen=True)
class Kin:
    """What relatives.lua tells. `parents`: those with an open link first. `start`: where further links begin; empty: nowhere."""

    state: Any
    kind: bytes
    open: int
    parents: Sequence[str]
    start: bytes
    links: Sequence[bytes]


def relatives(registry: Registry, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
    found: dict[str, Relatives] = {}
    for part, known in registry.locate(ids).items():
        for some in chunks(known, MOST_JOBS):
            for id, kin in zip(some, kin_of(registry, part, some), strict=True):
                if kin:
                    found[id] = _relatives(registry, part, id, kin, limit)
    return [found.get(id) for id in ids]


def kin_of(registry: Registry, part: Part, ids: Sequence[str], start: bytes = b"") -> list[Kin | None]:
    answer = registry.connection.on_part("relatives", part, [MOST_LINKS], [start, *map(to_bytes, ids)])
    return [_kin(*each) if each else None for each in answer]


def _kin(state: bytes, kept: bytes, start: bytes, *links: bytes) -> Kin:
    parents = [to_id(kept[at : at + ID]) for at in range(IDS_AT, len(kept), ID)]
    return Kin(state.decode(), kept[:1], int.from_bytes(kept[IDS_AT - 3 : IDS_AT], "big"), parents, start, links)


def _relatives(registry: Registry, part: Part, id: str, kin: Kin, limit: int) -> Relatives:
    known = set[str]()
    for home, ids in registry.locate(kin.parents[kin.open :]).items():
        for some in chunks(ids):
            # Else the parent is gone, and another job may have its id.
            links = b"".join(to_bytes(parent) + to_bytes(id) for parent in some)
            linked = registry.connection.on_part("linking", home, [], [links])
            known |= {parent for parent, found in zip(some, linked, strict=True) if found}
    # Those that are awaited may be unknown.
    parents = sorted(each for at, each in enumerate(kin.parents) if at < kin.open or each in known)
    children, page = set[str](), kin
    while True:
        children |= _there(registry, id, page.links)
        further = kin_of(registry, part, [id], page.start)[0] if page.start else None
        if further is None:
            break
        page = further
    more = len(parents) > limit or len(children) > limit
    on_dead: Any = "run" if kin.kind == b"r" else "cancel"
    return Relatives(part.queue, kin.state, on_dead, parents[:limit], sorted(children)[:limit], more)


def _there(registry: Registry, parent: str, links: Sequence[bytes]) -> set[str]:
    """The children that are there: a link stays with the parent even if the child never came or is gone."""
    by_part: dict[bytes, list[bytes]] = {}
    for link in links:
        by_part.setdefault(link[ID:], []).append(link[:ID])
    there = set()
    for name, ids in by_part.items():
        part = part_named(registry.prefix, name.decode())
        for some in chunks(ids):
            linked = registry.connection.on_part("linked", part, [], [b"".join(id + to_bytes(parent) for id in some)])
            there |= {to_id(id) for id, known in zip(some, linked, strict=True) if known}
    return there
