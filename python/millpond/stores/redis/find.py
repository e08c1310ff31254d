"""Reads jobs by id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from millpond.jobs import Record
from millpond.stores.redis.connection import MOST_ITEMS, chunks
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part
from millpond.stores.redis.wire import DESCRIBED, described, to_bytes


def find(registry: Registry, ids: Sequence[str]) -> Sequence[Record | None]:
    found = _found(registry, ids)
    return [found[id][1][0] if id in found else None for id in ids]


def _found(registry: Registry, ids: Sequence[str]) -> dict[str, tuple[Part, tuple[Record, int, int]]]:
    return {
        job[0].id: (part, job)
        for part, _, answer in ask(registry, "find", ids)
        for job in (described(part.queue, each) for each in chunks(answer, DESCRIBED))
    }


def ahead(registry: Registry, id: str) -> int | None:
    return next((answer[0] for _, _, answer in ask(registry, "ahead", [id]) if answer[0] >= 0), None)


def ask(registry: Registry, name: str, ids: Sequence[str]) -> Iterator[tuple[Part, Sequence[str], list[Any]]]:
    """Calls a script with ids in the partitions that know them."""
    for part, known in registry.locate(ids).items():
        left: Sequence[str] = known
        while left:
            chunk = left[:MOST_ITEMS]
            answer = registry.connection.on_part(name, part, [], [to_bytes(id) for id in chunk])
            # Where jobs are large, the last ones are left to another call.
            done = len(answer)
            if name == "find":
                late, *answer = answer
                done = len(chunk) - late
            yield part, chunk[:done], answer
            left = left[done:]
