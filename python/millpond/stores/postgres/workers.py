from __future__ import annotations

import json
from collections.abc import Sequence

from millpond.queues import WorkerBeat, WorkerRecord
from millpond.stores.postgres.calls import Calls
from millpond.stores.wire import read


def heartbeat(calls: Calls, workers: Sequence[WorkerBeat], gone: Sequence[str]) -> Sequence[bool]:
    given = {"workers": json.dumps(workers, default=vars), "gone": list(gone)}
    known: Sequence[bool] = calls.answer("heartbeat", **given, now=calls.now)
    return known


def workers(calls: Calls, queue: str | None) -> Sequence[WorkerRecord]:
    return [read(WorkerRecord, row[0]) for row in calls.rows("workers", queue=queue, now=calls.now)]
