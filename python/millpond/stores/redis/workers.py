"""Who works: contract/redis/heartbeat.lua."""

from __future__ import annotations

from collections.abc import Sequence

import msgpack

from millpond.queues import Lane, WorkerBeat, WorkerRecord
from millpond.stores.redis.connection import Connection, chunks


def heartbeat(connection: Connection, workers: Sequence[WorkerBeat], gone: Sequence[str]) -> Sequence[bool]:
    beats = [
        [each.id, each.queue, each.host, each.pid, each.slots, each.busy, *_flat(each.lanes or ())] for each in workers
    ]
    return [known == 1 for known in connection.script("heartbeat", None, [[*gone], beats])]


def workers(connection: Connection, queue: str | None) -> Sequence[WorkerRecord]:
    now, *told = connection.script("workers")
    found = [
        WorkerRecord(
            id=id.decode(), queue=place[0], host=place[1], pid=place[2], slots=place[3], busy=place[4],
            since=int(place[5]), seen=int(place[6]), silence=max(0, now - int(place[6])), lanes=_lanes(place[7:]),
        )
        for id, places in chunks(told, 2) for place in msgpack.unpackb(places)
    ]  # fmt: skip
    chosen = [each for each in found if queue in (None, each.queue)]
    return sorted(chosen, key=lambda each: (each.since, each.id.encode(), each.queue.encode()))


def _flat(lanes: Sequence[Lane]) -> list[int]:
    return [number for lane in lanes for number in (lane["minPriority"], lane["reserve"])]


def _lanes(numbers: Sequence[int]) -> list[Lane] | None:
    return [Lane(minPriority=least, reserve=reserve) for least, reserve in chunks(numbers, 2)] or None
