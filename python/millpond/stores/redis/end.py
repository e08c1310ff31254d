"""Ends and extends claims."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from millpond.stores.redis.connection import MOST_ITEMS
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry, group_by_part
from millpond.stores.redis.routing import Part, partition_of
from millpond.stores.redis.wire import encoded, pack_error, pack_setting, to_bytes

ENDS: Final = {
    "complete": ("ok", "stale"), "release": ("ok", "stale", "paused"), "fail": ("retry", "stale", "dead"),
    "extend": ("ok", "stale", "cancelled"),
}  # fmt: skip
MORE: Final[Mapping[str, Any]] = {
    "complete": lambda _: (), "release": lambda _: (), "extend": lambda item: (encoded(item.progress),),
    "fail": lambda item: (pack_error(item.error), _delay(item.delay)),
}  # fmt: skip
"""What follows the id and the fence of a claim."""


class Endings:
    def __init__(self, registry: Registry, notifier: Notifier) -> None:
        self._connection, self._registry, self._notifier = registry.connection, registry, notifier

    def end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        """In the partition that follows from the job's group, key or id. What is stale there may be in another."""
        parts, outcomes = self._registry.parts(queue), ["stale"] * len(items)
        homes = [partition_of(item.id, item.key, item.group, len(parts)) for item in items]
        for step in range(len(parts)):
            left = [at for at in range(len(items)) if outcomes[at] == "stale"]
            routed = ((homes[at] + step, at) for at in left)
            for part, chosen in group_by_part((parts[index % len(parts)], at) for index, at in routed).items():
                while chosen:
                    chunk = chosen[:MOST_ITEMS]
                    answer = self._end_part(op, part, [items[at] for at in chunk], lease)
                    for at, outcome in zip(chunk, answer):
                        outcomes[at] = ENDS[op][int(outcome)]
                    # Where jobs are large, the last ones have no answer, and are sent again.
                    chosen = chosen[len(answer) :] if answer else []
        ended = [(item, outcome) for item, outcome in zip(items, outcomes, strict=True) if outcome != "stale"]
        paused = [item.pause for item, outcome in ended if outcome == "paused"]
        for part in parts if paused and len(parts) > 1 else []:
            # The pause of the queue, not of a group.
            self._connection.on_part("configure", part, [], ["pause", pack_setting(max(paused))])
        if op == "complete" or op == "fail":
            self._notifier.ring_jobs("finished", queue, [item.id for item, outcome in ended if outcome != "retry"])
        if op == "release" and ended or any(outcome == "retry" and item.delay == 0 for item, outcome in ended):
            self._notifier.ring("work", queue)
        return ["ok" if outcome == "paused" else outcome for outcome in outcomes]

    def _end_part(self, op: str, part: Part, items: Sequence[Any], lease: int | None) -> Any:
        arguments = [each for item in items for each in (to_bytes(item.id), item.fence, *MORE[op](item))]
        head: list[object] = []
        logs = ["\n".join(item.log) or False for item in items] if any(item.log for item in items) else None
        match op:
            case "complete":
                fences = [item.fence for item in items]
                results = [encoded(item.result) for item in items] if any(item.result for item in items) else []
                head = [fences if len(set(fences)) > 1 else fences[0], logs]
                arguments = [b"".join(to_bytes(item.id) for item in items), *results]
            case "release":
                head = [[item.pause for item in items], logs]
            case "fail":
                head = [logs]
            case "extend":
                head = [lease, logs]
        return self._connection.on_part(op, part, head, arguments)


def _delay(delay: int | str | None) -> str:
    return "" if delay is None else f"r{random.random()}" if delay == "backoff" else str(delay)
