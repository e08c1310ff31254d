from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from millpond.queues import QueueLimits, QueueStats, Slice
from millpond.stores.postgres.calls import Calls
from millpond.stores.wire import read


def stats(calls: Calls, queue: str | None, minutes: int) -> Sequence[QueueStats]:
    return [_stats(row[0]) for row in calls.rows("stats", queue=queue, minutes=minutes, now=calls.now)]


def record(calls: Calls, slices: Sequence[Slice]) -> None:
    calls.rows("record", slices=json.dumps(slices, default=vars), now=calls.now)


def _stats(told: Mapping[str, Any]) -> QueueStats:
    slices = [
        read(Slice, each, buckets={int(at): count for at, count in each["buckets"].items()}) for each in told["histograms"]
    ]
    return read(QueueStats, told, limits=told["limits"] and read(QueueLimits, told["limits"]), histograms=slices)
