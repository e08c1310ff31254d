"""What a queue's partitions count, added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgpack

from millpond.jobs import STATES, Metric, QueueStats, Slice
from millpond.stores.redis.registry import Registry

METRICS: Final[tuple[Metric, ...]] = ("wait", "run")


def stats_of(registry: Registry, queue: str, minutes: int) -> QueueStats:
    found = QueueStats(queue, None, False, dict.fromkeys(STATES, 0), None, [])
    slices: dict[tuple[int, int], Slice] = {}
    for part in registry.parts(queue):
        paused, capacity, *rest = registry.connection.on_part("stats", part, [minutes])
        counts, oldest, kept = rest[: len(STATES)], rest[len(STATES)], rest[len(STATES) + 2 :]
        found.paused = found.paused or paused == 1
        if capacity >= 0:
            found.capacity = (found.capacity or 0) + capacity
        for state, count in zip(STATES, counts, strict=True):
            found.counts[state] += count
        if oldest >= 0:
            found.oldest_waiting = max(oldest, found.oldest_waiting or 0)
        for minute in kept:
            _add_minute(slices, queue, minute)
    found.histograms.extend(slices.values())
    return found


def _add_minute(slices: dict[tuple[int, int], Slice], queue: str, packed: bytes) -> None:
    _, *numbers = msgpack.unpackb(packed)
    for at in range(0, len(numbers), 4):
        priority, metric, bucket, count = (int(each) for each in numbers[at : at + 4])
        buckets = slices.setdefault((priority, metric), Slice(queue, priority, METRICS[metric], {})).buckets
        buckets[bucket] = buckets.get(bucket, 0) + count


def record(registry: Registry, slices: Sequence[Slice]) -> None:
    for queue in {each.queue for each in slices}:
        numbers = [
            number
            for each in slices
            if each.queue == queue
            for bucket, count in each.buckets.items()
            for number in (each.priority, METRICS.index(each.metric), bucket, count)
        ]
        registry.connection.on_part("record", registry.parts(queue)[0], [numbers])
