from __future__ import annotations

import json
from collections.abc import Sequence

from millpond.queues import WorkerBeat, WorkerRecord
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import read


def heartbeat(tx: Transaction, workers: Sequence[WorkerBeat], gone: Sequence[str]) -> Sequence[bool]:
    for id in gone:
        tx.changes("workers/gone", id=id)
    for each in workers:
        lanes = None if each.lanes is None else json.dumps(each.lanes)
        tx.changes("workers/beat", **{**vars(each), "lanes": lanes})
    return [tx.changes("workers/heard", queue=each.queue) == 1 for each in workers]


def workers(tx: Transaction, queue: str | None) -> Sequence[WorkerRecord]:
    return [read(WorkerRecord, row, lanes=json.loads(row["lanes"] or "null")) for row in map(dict, tx.rows("workers/list", queue=queue))]
