"""Counts, limits and histograms of queues, over their partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgpack

from millpond.histogram import merge
from millpond.jobs import STATES
from millpond.queues import METRICS, Given, QueueLimits, QueueStats, Slice
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.shares import rate_in
from millpond.stores.redis.wire import unpack_absent


def stats(registry: Registry, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
    there = registry.all()
    registry.known |= there
    return [stats_of(registry, name, minutes) for name in there if queue in (None, name)]


def stats_of(registry: Registry, queue: str, minutes: int) -> QueueStats:
    capacity: int | None = None
    oldest, limits, paused = -1, None, False
    starts, at_limit, held = list[int | None](), 0, 0
    given, claims = Given(), list[int | None]()
    counts = dict.fromkeys(STATES, 0)
    slices: dict[tuple[int, int], Slice] = {}
    parts = registry.parts(queue)
    partitions = len(parts)
    for part in parts:
        paused_here, share, *rest = registry.connection.on_part("stats", part, [minutes])
        paused, oldest = paused or paused_here == 1, max(oldest, rest[len(STATES)])
        capacity = (capacity or 0) + share if share >= 0 else capacity
        limits = _added(limits, _limits(rest[len(STATES) + 1], partitions))
        next_start, at_limit_here, held_here = rest[len(STATES) + 2 : len(STATES) + 5]
        starts.append(start(next_start))
        at_limit, held = at_limit + at_limit_here, held + held_here
        for state, count in zip(STATES, rest):
            counts[state] += count
        operator, claimed = rest[len(STATES) + 5 : len(STATES) + 7]
        given = Given.from_texts(None, operator)
        claims.append(claimed if claimed >= 0 else None)
        for minute in rest[len(STATES) + 7 :]:
            _, *numbers = msgpack.unpackb(minute)
            for priority, metric, bucket, count in chunks([int(each) for each in numbers], 4):
                new = Slice(queue, priority, METRICS[metric], {})
                merge(slices.setdefault((priority, metric), new).buckets, {bucket: count})
    return QueueStats(
        queue=queue, capacity=capacity, paused=paused, counts=counts, overrides=given.operator,
        last_claim=least(*claims), oldest_waiting=oldest if oldest >= 0 else None,
        limits=limits, next_start=least(*starts), groups_at_limit=at_limit, groups_held=held,
        histograms=list(slices.values()),
    )  # fmt: skip


def record(registry: Registry, slices: Sequence[Slice]) -> None:
    for queue in {each.queue for each in slices}:
        numbers = [
            number
            for each in slices if each.queue == queue
            for bucket, count in each.buckets.items()
            for number in (each.priority, METRICS.index(each.metric), bucket, count)
        ]  # fmt: skip
        registry.connection.on_part("record", registry.parts(queue)[0], [numbers])


def note_claims(registry: Registry, queues: Sequence[str]) -> Sequence[bool]:
    there = registry.all()
    return [
        queue in there and registry.connection.on_part("note-claims", registry.parts(queue)[0], [])[0] == 1
        for queue in queues
    ]


def _limits(packed: bytes, partitions: int) -> QueueLimits | None:
    if not packed:
        return None
    running, rate, grouped, group_running, group_rate = unpack_absent(packed)
    return QueueLimits(
        running=running, rate=rate_in(rate, partitions), grouped=bool(grouped), group_running=group_running,
        group_rate=rate_in(group_rate),
    )  # fmt: skip


def _added(one: QueueLimits | None, other: QueueLimits | None) -> QueueLimits | None:
    """The limits of two partitions. The rates are the same in all."""
    if one is None or other is None:
        return one or other
    return replace(one, running=total(one.running, other.running), grouped=one.grouped or other.grouped)


def total(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def least(*times: int | None) -> int | None:
    return min((each for each in times if each is not None), default=None)


def start(told: int) -> int | None:
    return None if told < 0 else told
