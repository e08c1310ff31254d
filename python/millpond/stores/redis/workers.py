"""Who works: kept under keys of the whole store, as contract/redis/heartbeat.lua tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgpack

from millpond.queues import Lane, WorkerBeat, WorkerRecord
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.registry import Registry


def heartbeat(registry: Registry, workers: Sequence[WorkerBeat], gone: Sequence[str]) -> Sequence[bool]:
    beats = [
        [each.id, each.queue, each.host, each.pid, each.slots, each.busy, *_flat(each.lanes or ())] for each in workers
    ]
    packed = msgpack.packb([registry.connection.now(), [*gone], beats])
    return [known == 1 for known in registry.on_keys("heartbeat", [packed])]


def workers(registry: Registry, queue: str | None) -> Sequence[WorkerRecord]:
    _, _, now, *told = registry.on_keys("workers", [_now(registry), 0])
    found = [
        WorkerRecord(
            id=id.decode(), queue=place[0], host=place[1], pid=place[2], slots=place[3], busy=place[4],
            since=int(place[5]), seen=int(place[6]), silence=max(0, now - int(place[6])), lanes=_lanes(place[7:]),
        )
        for id, places in chunks(told, 2) for place in msgpack.unpackb(places)
    ]  # fmt: skip
    chosen = [each for each in found if queue in (None, each.queue)]
    return sorted(chosen, key=lambda each: (each.since, each.id.encode(), each.queue.encode()))


def forget_workers(registry: Registry) -> tuple[int, int]:
    """Forgets workers that are not heard of any more. The answer is how many queues there are, and how many links are awaited."""
    queues, awaited, _ = registry.on_keys("workers", [_now(registry), 1])
    return queues, awaited


def last_claims(registry: Registry, queues: Sequence[str]) -> Mapping[str, int]:
    """ms since a worker of the queue was last heard of."""
    now, *times = registry.on_keys("last-claims", [_now(registry), *queues])
    return {queue: max(0, now - int(time)) for queue, time in zip(queues, times, strict=False) if time is not None}


def _flat(lanes: Sequence[Lane]) -> list[int]:
    return [number for lane in lanes for number in (lane["minPriority"], lane["reserve"])]


def _lanes(numbers: Sequence[int]) -> list[Lane] | None:
    return [Lane(minPriority=least, reserve=reserve) for least, reserve in chunks(numbers, 2)] or None


def _now(registry: Registry) -> int | str:
    now = registry.connection.now()
    return "" if now is None else now
