"""Counts, limits and histograms of queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from millpond.histogram import merge
from millpond.queues import METRICS, Given, QueueLimits, QueueStats, Slice
from millpond.stores.redis.connection import Connection, chunks
from millpond.stores.redis.wire import rate_in


def stats(connection: Connection, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
    queues = [name.decode() for name in connection.script("queues")] if queue is None else [queue]
    told = ((name, connection.script("stats", name, [minutes])) for name in queues)
    return [_stats(name, msgpack.unpackb(answer[0])) for name, answer in told if answer]


def _stats(queue: str, told: Mapping[str, Any]) -> QueueStats:
    slices: dict[tuple[int, int], Slice] = {}
    for _, *numbers in told["minutes"]:
        for priority, metric, bucket, count in chunks([int(each) for each in numbers], 4):
            new = Slice(queue, priority, METRICS[metric], {})
            merge(slices.setdefault((priority, metric), new).buckets, {bucket: count})
    return QueueStats(
        queue=queue, paused=told["paused"], capacity=told.get("capacity"), counts=told["counts"], totals=told["totals"],
        overrides=Given.from_texts(None, told.get("operator")).operator, last_claim=told.get("lastClaim"),
        oldest_waiting=told.get("oldestWaiting"), limits=_limits(told.get("limits")), next_start=told.get("nextStart"),
        groups_at_limit=told["groupsAtLimit"], groups_held=told["groupsHeld"], histograms=list(slices.values()),
    )  # fmt: skip


def record(connection: Connection, slices: Sequence[Slice]) -> None:
    for queue in dict.fromkeys(each.queue for each in slices):
        numbers = [
            number
            for each in slices if each.queue == queue
            for bucket, count in each.buckets.items()
            for number in (each.priority, METRICS.index(each.metric), bucket, count)
        ]  # fmt: skip
        connection.script("record", queue, [numbers])


def _limits(kept: Sequence[Any] | None) -> QueueLimits | None:
    if not kept:
        return None
    running, rate, grouped, group_running, group_rate = (None if each is False else each for each in kept)
    return QueueLimits(
        running=running, rate=rate_in(rate), grouped=bool(grouped), group_running=group_running, group_rate=rate_in(group_rate)
    )
