from __future__ import annotations

from collections.abc import Sequence

from millpond.queues import WorkerBeat, WorkerRecord
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import read


def heartbeat(tx: Transaction, workers: Sequence[WorkerBeat], gone: Sequence[str]) -> Sequence[bool]:
    for id in gone:
        tx.changes("workers/gone", id=id)
    for each in workers:
        tx.changes("workers/beat", **vars(each))
    return [tx.changes("workers/heard", queue=each.queue) == 1 for each in workers]


def workers(tx: Transaction, queue: str | None) -> Sequence[WorkerRecord]:
    return [read(WorkerRecord, dict(row)) for row in tx.rows("workers/list", queue=queue)]
