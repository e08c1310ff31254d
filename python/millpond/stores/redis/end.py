"""Ends and extends claims."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from millpond.jobs import JournalItem, Release
from millpond.steps import Park
from millpond.stores.redis.connection import MOST_CHANGES, MOST_ITEMS, Argument, Connection
from millpond.stores.redis.journal import entry_items
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import encoded, pack_error, to_bytes

ENDS: Final = {
    "complete": ("ok", "stale"), "release": ("ok", "stale", "full"), "fail": ("retry", "stale", "dead"),
    "extend": ("ok", "stale", "cancelled"), "journal": ("ok", "stale", "full"),
}  # fmt: skip
MORE: Final[Mapping[str, Any]] = {
    "complete": lambda _: (), "release": lambda _: (), "journal": lambda _: (), "extend": lambda item: (encoded(item.progress),),
    "fail": lambda item: (pack_error(item.error), _delay(item.delay)),
}  # fmt: skip
"""What follows the id and the fence of a claim."""


class Endings:
    def __init__(self, connection: Connection, notifier: Notifier) -> None:
        self._connection, self._notifier = connection, notifier

    def end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        most = MOST_ITEMS if op in ("complete", "extend") else MOST_CHANGES
        outcomes = self._connection.in_chunks(items, lambda some: self._end(op, queue, some, lease), most, _size_of)
        ended = [(item, outcome) for item, outcome in zip(items, outcomes, strict=True) if outcome not in ("stale", "full")]
        if op == "complete" or op == "fail":
            self._notifier.ring_jobs("finished", queue, [item.id for item, outcome in ended if outcome != "retry"])
        if op == "release" and ended or any(outcome == "retry" and item.delay == 0 for item, outcome in ended):
            self._notifier.ring("work", queue)
        return outcomes

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None) -> Sequence[str]:
        arguments: list[Argument] = [each for item in items for each in (to_bytes(item.id), item.fence, *MORE[op](item))]
        head: list[object] = []
        logs = ["\n".join(item.log) or False for item in items] if any(item.log for item in items) else None
        match op:
            case "complete":
                fences = [item.fence for item in items]
                results = [encoded(item.result) for item in items] if any(item.result for item in items) else []
                head = [fences if len(set(fences)) > 1 else fences[0], logs]
                arguments = [b"".join(to_bytes(item.id) for item in items), *results]
            case "release":
                parks = [item.park for item in items]
                head = [[item.pause for item in items], logs, [park and _park(park) or False for park in parks] if any(parks) else None]
                for park in parks:
                    if park:
                        arguments += [b"".join(map(to_bytes, dict.fromkeys(park.after))), *entry_items(park.entries)]
            case "journal":
                head = [[len(item.entries) for item in items], logs]
                arguments += [part for item in items for part in entry_items(item.entries)]
            case "fail":
                head = [logs]
            case "extend":
                head = [lease, logs]
        return [ENDS[op][int(answer)] for answer in self._connection.script(op, queue, head, arguments)]


def _park(park: Park) -> list[object]:
    return [False if park.until is None else park.until, park.signals, len(park.entries), park.reason]


def _size_of(item: Any) -> int:
    """Bytes of its entries."""
    entries = item.entries if isinstance(item, JournalItem) else item.park.entries if isinstance(item, Release) and item.park else ()
    return sum(entry.size for entry in entries)


def _delay(delay: int | str | None) -> str:
    return "" if delay is None else f"r{random.random()}" if delay == "backoff" else str(delay)
