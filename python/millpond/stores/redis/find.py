"""Reads jobs, by id and by state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from millpond.jobs import FINAL, Listed, Record, State, cursor_fields
from millpond.stores.redis.connection import MOST_ITEMS, Argument, chunks
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


def page(registry: Registry, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Listed]:
    last = cursor_fields(state, after) if after else None
    jobs: list[tuple[Listed, int, int]] = []
    for part in registry.look(queue):
        most, more = min(limit, MOST_ITEMS), 1
        place, items = _beyond(part, last) if last else (None, [])
        while more and most > 0:
            more, *told = registry.connection.on_part("list", part, [state, most, place], items)
            for each in chunks(told, DESCRIBED):
                record, at, moment = described(queue, each)
                cursor = f"{state}.{record.priority}.{moment}.{at}.{part.index}.{record.id}"
                jobs.append((Listed(**vars(record), cursor=cursor), at, moment))
                most -= 1
                # Jobs may be large, so that the page is a short one: it goes on here.
                place, items = [True, record.priority, at, moment], [to_bytes(record.id)]
    # The sort is stable: jobs of the same time stay in the order of partitions, and within one as the script gave them.
    sign = -1 if state in FINAL else 1
    jobs.sort(key=lambda job: (-job[0].priority if state == "waiting" else 0, sign * job[2]))
    return [job[0] for job in jobs[:limit]]


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


def _beyond(part: Part, last: Sequence[str]) -> tuple[list[object], list[Argument]]:
    """Where the page after that place begins in a partition."""
    priority, moment, place, index = map(int, last[:4])
    if part.index == index:
        return [True, priority, place, moment], [to_bytes(last[4])]
    return [False, priority, False, moment, part.index > index], []
