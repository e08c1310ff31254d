"""Lists jobs by state, and groups with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from millpond.contract import DEFAULTS
from millpond.jobs import FINAL, JobFilter, Listed, Page, Record, State, cursor_fields
from millpond.queues import Group, GroupLimits
from millpond.stores.redis.connection import MOST_ITEMS, Argument, chunks
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, group_index
from millpond.stores.redis.shares import rate_in
from millpond.stores.redis.stats import least, start, total
from millpond.stores.redis.wire import DESCRIBED, chosen_by, described, to_bytes, unpack_absent


MOST_LOOKED_AT: Final = DEFAULTS["store"]["look"]
"""Jobs that a filter looks at in a call, unless its limit is higher."""


@dataclass(frozen=True)
class _Found:
    record: Record
    at: int
    moment: int
    part: Part

    @property
    def place(self) -> Sequence[str]:
        """The fields of its cursor."""
        record = self.record
        return [str(each) for each in (record.priority, self.moment, self.at, self.part.index, record.id)]


def page(
    registry: Registry, queue: str, state: State, limit: int, after: str | None, filter: JobFilter | None
) -> Page:
    last: Sequence[str] | None = cursor_fields(state, after) if after else None
    parts, most_looked_at = registry.look(queue), max(limit, MOST_LOOKED_AT)
    chosen = filter and chosen_by(filter)
    jobs: list[Listed] = []
    looked_at = 0
    while True:
        most = limit - len(jobs) if filter is None else -(-(most_looked_at - looked_at) // len(parts))
        most = min(most, MOST_ITEMS)
        found, end, is_short = _look(registry, parts, state, most, last, chosen)
        for each in found[: limit - len(jobs)]:
            last = each.place
            jobs.append(Listed(**vars(each.record), cursor=".".join([state, *last])))
        if len(jobs) < limit:
            if end is None:
                return Page(jobs, None)
            last = end.place
        looked_at += most * len(parts)
        if len(jobs) == limit or filter is not None and (is_short or looked_at >= most_looked_at):
            return Page(jobs, ".".join([state, *(last or ())]))


def _look(
    registry: Registry, parts: Sequence[Part], state: State, most: int, last: Sequence[str] | None, chosen: object
) -> tuple[Sequence[_Found], _Found | None, bool]:
    """What was found up to the least place that a partition has looked up to and may go on from; that place; whether jobs are large."""
    found: list[_Found] = []
    ends: list[_Found] = []
    is_short = False
    for part in parts:
        place, items = _beyond(part, last) if last else (None, [])
        more, only_last, *told = registry.connection.on_part("list", part, [state, most, place, chosen], items)
        here = [_Found(*described(part.queue, each), part) for each in chunks(told, DESCRIBED)]
        if more:
            ends.append(here[-1])
        found += here[:-1] if only_last else here
        is_short = is_short or more == 2

    def order(each: _Found) -> tuple[int, int, int]:
        # The sort is stable: within a partition they stay as the script gave them.
        sign = -1 if state in FINAL else 1
        return -each.record.priority if state == "waiting" else 0, sign * each.moment, each.part.index

    end = min(ends, key=order, default=None)
    if end is not None:
        found = [each for each in found if each.part == end.part or order(each) <= order(end)]
    return (sorted(found, key=order) if len(parts) > 1 else found), end, is_short


def _beyond(part: Part, last: Sequence[str]) -> tuple[list[object], list[Argument]]:
    """Where the page after that place begins in a partition."""
    priority, moment, place, index = map(int, last[:4])
    if part.index == index:
        return [True, priority, place, moment], [to_bytes(last[4])]
    return [False, priority, False, moment, part.index > index], []


def groups(registry: Registry, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
    """A group is in one partition; only the jobs without one are in several."""
    parts = registry.look(queue)
    asked = [parts[group_index(group, len(parts))]] if group else parts
    found = [each for part in asked for each in _groups(registry, part, len(parts), limit, after, group)]
    ungrouped = [each for each in found if not each.group]
    named = sorted((each for each in found if each.group), key=lambda each: each.group.encode())
    return [*([reduce(_joined, ungrouped)] if ungrouped else []), *named][:limit]


def _groups(
    registry: Registry, part: Part, partitions: int, limit: int, after: str | None, group: str | None
) -> Sequence[Group]:
    found: Sequence[Group] = []
    while len(found) < limit:
        last, *told = registry.connection.on_part("groups", part, [min(limit - len(found), MOST_ITEMS), after, group])
        found = [*found, *(_group(each, partitions) for each in chunks(told, 5))]
        if last is None:
            break
        after = last.decode()
    return found


def _group(told: Sequence[Any], partitions: int) -> Group:
    name, own, waiting, running, next_start = told
    most, rate, weight = unpack_absent(own) if own else (None, None, 1)
    limits = GroupLimits(most, rate_in(rate, 1 if name else partitions), weight) if own else None
    return Group(
        group=name.decode(), limits=limits, waiting=waiting, running=running,
        next_start=start(next_start),
    )  # fmt: skip


def _joined(one: Group, other: Group) -> Group:
    """The jobs without a group, in two partitions."""
    both = one.limits and other.limits
    limits = replace(both, running=total(one.limits.running, both.running)) if one.limits and both else None
    return replace(
        one, limits=limits, waiting=one.waiting + other.waiting, running=one.running + other.running,
        next_start=least(one.next_start, other.next_start),
    )  # fmt: skip
