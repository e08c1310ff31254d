from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from millpond.jobs import STATES
from millpond.queues import QueueLimits, QueueStats, Slice
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import read

TOTALS: Final = ("pushed", "done", "failed", "dead", "cancelled", "lost", "released")


def stats(tx: Transaction, queue: str | None, minutes: int) -> Sequence[QueueStats]:
    told = tx.rows("stats/histograms", queue=queue, minutes=minutes) if minutes > 0 else []
    slices = [_slice(json.loads(row["slice"])) for row in told]
    return [_stats(json.loads(row["stats"]), slices) for row in tx.rows("stats/queues", queue=queue)]


def record(tx: Transaction, slices: Sequence[Slice]) -> None:
    for each in slices:
        given = {"queue": each.queue, "priority": each.priority, "metric": each.metric}
        for bucket, count in each.buckets.items():
            tx.changes("record/record", bucket=bucket, count=count, **given)


def _stats(told: dict[str, Any], slices: list[Slice]) -> QueueStats:
    limits = told["limits"] and read(QueueLimits, told["limits"])
    counts = dict.fromkeys(STATES, 0) | told["counts"]
    totals = dict.fromkeys(TOTALS, 0) | told["totals"]
    histograms = [each for each in slices if each.queue == told["queue"]]
    return read(QueueStats, told | {"limits": limits, "counts": counts, "totals": totals}, histograms=histograms)


def _slice(told: dict[str, Any]) -> Slice:
    return read(Slice, told, buckets={int(bucket): count for bucket, count in told["buckets"].items()})
