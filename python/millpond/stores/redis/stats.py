"""Counts, limits and histograms of queues, over their partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import msgpack

from millpond.histogram import merge
from millpond.jobs import STATES
from millpond.queues import METRICS, Given, QueueLimits, QueueStats, Slice
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.shares import rate_in
from millpond.stores.redis.workers import last_claims


def stats(registry: Registry, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
    there = registry.all()
    registry.known |= there
    queues = [name for name in there if queue in (None, name)]
    claims = last_claims(registry, queues)
    return [replace(stats_of(registry, name, minutes), last_claim=claims.get(name)) for name in queues]


def stats_of(registry: Registry, queue: str, minutes: int) -> QueueStats:
    """But for `last_claim`."""
    parts = registry.parts(queue)
    told: list[dict[str, Any]] = [
        msgpack.unpackb(registry.connection.on_part("stats", part, [minutes])[0]) for part in parts
    ]
    slices: dict[tuple[int, int], Slice] = {}
    for _, *numbers in (minute for each in told for minute in each["minutes"]):
        for priority, metric, bucket, count in chunks([int(each) for each in numbers], 4):
            new = Slice(queue, priority, METRICS[metric], {})
            merge(slices.setdefault((priority, metric), new).buckets, {bucket: count})
    capacities = [each["capacity"] for each in told if "capacity" in each]
    return QueueStats(
        queue=queue, paused=any(each["paused"] for each in told), capacity=sum(capacities) if capacities else None,
        counts={state: sum(each["counts"][state] for each in told) for state in STATES},
        totals={name: sum(each["totals"][name] for each in told) for name in told[0]["totals"]},
        overrides=Given.from_texts(None, told[0].get("operator")).operator, last_claim=None,
        oldest_waiting=max((each["oldestWaiting"] for each in told if "oldestWaiting" in each), default=None),
        limits=reduce(_added, (_limits(each.get("limits"), len(parts)) for each in told)),
        next_start=least(*(each.get("nextStart") for each in told)),
        groups_at_limit=sum(each["groupsAtLimit"] for each in told), groups_held=sum(each["groupsHeld"] for each in told),
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


def _limits(kept: Sequence[Any] | None, partitions: int) -> QueueLimits | None:
    if not kept:
        return None
    running, rate, grouped, group_running, group_rate = (None if each is False else each for each in kept)
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
