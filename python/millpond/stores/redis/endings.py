"""How claims end or go on: complete, fail, release, extend. Each answers 0 if it took effect, 1 if the claim is stale."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from millpond.jobs import Completion, Extension, Failure, Held
from millpond.stores.redis.connection import Argument, Connection
from millpond.stores.redis.push import MOST_ITEMS
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, partition_of
from millpond.stores.redis.wire import encoded, pack_error, to_bytes

H = TypeVar("H", bound=Held)
STALE = 1
Call = Callable[[Connection, Part, Sequence[H]], list[int]]


def end(registry: Registry, queue: str, items: Sequence[H], call: Call[H]) -> list[int]:
    """Each claim is ended in the partition of its job, which follows from the job's key, or from its id.

    If the caller does not give the key, the other partitions are asked about what is stale there.
    """
    parts, outcomes = registry.parts(queue), [STALE] * len(items)
    for step in range(len(parts)):
        by_part: dict[Part, list[int]] = {}
        for at, item in enumerate(items):
            if outcomes[at] == STALE and (step == 0 or item.key is None):
                index = (partition_of(item.id, item.key, len(parts)) + step) % len(parts)
                by_part.setdefault(parts[index], []).append(at)
        for part, chosen in by_part.items():
            for start in range(0, len(chosen), MOST_ITEMS):
                chunk = chosen[start : start + MOST_ITEMS]
                for at, outcome in zip(chunk, call(registry.connection, part, [items[at] for at in chunk]), strict=True):
                    outcomes[at] = outcome
    return outcomes


def complete(connection: Connection, part: Part, items: Sequence[Completion]) -> list[int]:
    fences = [item.fence for item in items]
    results = [encoded(item.result) for item in items] if any(item.result for item in items) else []
    ids = b"".join(to_bytes(item.id) for item in items)
    return _told(connection.on_part("complete", part, [fences if len(set(fences)) > 1 else fences[0]], [ids, *results]))


def fail(connection: Connection, part: Part, items: Sequence[Failure]) -> list[int]:
    arguments: list[Argument] = []
    for item in items:
        arguments += [to_bytes(item.id), item.fence, pack_error(item.error), _delay(item)]
    return _told(connection.on_part("fail", part, [], arguments))


def release(connection: Connection, part: Part, items: Sequence[Held]) -> list[int]:
    arguments: list[Argument] = [each for item in items for each in (to_bytes(item.id), item.fence)]
    return _told(connection.on_part("release", part, [], arguments))


def extend(lease: int | None) -> Call[Extension]:
    def call(connection: Connection, part: Part, items: Sequence[Extension]) -> list[int]:
        arguments: list[Argument] = []
        for item in items:
            arguments += [to_bytes(item.id), item.fence, encoded(item.progress)]
        return _told(connection.on_part("extend", part, [lease], arguments))

    return call


def _delay(item: Failure) -> str:
    return "" if item.delay is None else f"r{random.random()}" if item.delay == "backoff" else str(item.delay)


def _told(answer: Any) -> list[int]:
    return [int(each) for each in answer]
