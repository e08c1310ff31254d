"""Reads groups, with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from millpond.queues import Group, GroupLimits
from millpond.stores.redis.connection import MOST_ITEMS, chunks
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, group_index
from millpond.stores.redis.shares import rate_in
from millpond.stores.redis.stats import least, start, total
from millpond.stores.redis.wire import unpack_absent


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
