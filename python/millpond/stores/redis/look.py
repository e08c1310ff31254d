"""Looking jobs up, by id and in lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from millpond.jobs import State
from millpond.stores.redis.connection import Argument
from millpond.stores.redis.push import MOST_ITEMS
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part
from millpond.stores.redis.wire import DESCRIBED, Found, found, to_bytes

MOST_KEYS: Final = 250
MOST_LOOKS: Final = 5_000
FINAL: Final = ("done", "dead", "cancelled")


def locate(registry: Registry, ids: Sequence[str]) -> dict[Part, list[str]]:
    """The ids that are known, by partition."""
    places: dict[Part, list[str]] = {}
    left = list(dict.fromkeys(ids))
    for _, bucket in groupby(sorted(registry.all_parts(), key=lambda part: part.bucket), key=lambda part: part.bucket):
        parts = list(bucket)
        for start in range(0, len(parts), MOST_KEYS):
            some = parts[start : start + MOST_KEYS]
            for chunk in chunks(left, max(1, MOST_LOOKS // len(some))):
                keys, items = [part.key("jobs") for part in some], [to_bytes(id) for id in chunk]
                for id, number in zip(chunk, registry.connection.on_keys("locate", keys, items), strict=True):
                    if number:
                        places.setdefault(some[number - 1], []).append(id)
        known = {id for part in parts for id in places.get(part, ())}
        left = [id for id in left if id not in known]
    return places


def find(registry: Registry, ids: Sequence[str]) -> dict[str, Found]:
    jobs: dict[str, Found] = {}
    for part, known in locate(registry, ids).items():
        for chunk in chunks(known, MOST_ITEMS):
            answer = registry.connection.on_part("find", part, [], [to_bytes(id) for id in chunk])
            for at in range(0, len(answer), DESCRIBED):
                each = found(part, answer[at : at + DESCRIBED])
                jobs[each.record.id] = each
    return jobs


def list_jobs(registry: Registry, queue: str, state: State, limit: int, after: str | None) -> list[Found]:
    last = find(registry, [after]).get(after) if after else None
    if after and (last is None or last.record.queue != queue or last.record.state != state):
        return []
    jobs: list[Found] = []
    for part in registry.parts(queue):
        place, items = _beyond(part, last)
        answer = registry.connection.on_part("list", part, [state, min(limit, MOST_ITEMS), place], items)
        jobs += [found(part, answer[at : at + DESCRIBED]) for at in range(0, len(answer), DESCRIBED)]
    # The sort is stable: jobs of the same time stay in the order of partitions, and within one as the script gave them.
    jobs.sort(key=_order)
    return jobs[:limit]


def _beyond(part: Part, last: Found | None) -> tuple[list[object] | None, list[Argument]]:
    """Where the page begins in this partition."""
    if last is None:
        return None, []
    if part == last.part:
        return [True, last.record.priority, last.place, last.time], [to_bytes(last.record.id)]
    return [False, last.record.priority, False, last.time, part.index > last.part.index], []


def _order(job: Found) -> tuple[int, int]:
    if job.record.state == "waiting":
        return -job.record.priority, job.time
    return 0, -job.time if job.record.state in FINAL else job.time


def chunks(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
