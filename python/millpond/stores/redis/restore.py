from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from millpond.jobs import Record, RestoreOutcome
from millpond.stores.redis.connection import MOST_CHANGES, Argument, Connection
from millpond.stores.redis.journal import entry_items
from millpond.stores.redis.wire import encoded, pack_error, to_bytes


def restore(connection: Connection, records: Sequence[Record]) -> tuple[Sequence[RestoreOutcome], bool]:
    """The outcomes, and whether a queue came into being."""
    made = False

    def send(some: Sequence[Record]) -> list[RestoreOutcome]:
        nonlocal made
        items: list[Argument] = [each for record in some for each in _arguments(record)]
        entries = [entry for record in some for entry in record.entries]
        head = [[len(record.entries) for record in some]] if entries else []
        is_new, *outcomes = connection.script("restore", None, head, items + entry_items(entries))
        made = made or is_new == 1
        return ["existing" if outcome else "restored" for outcome in outcomes]

    return connection.in_chunks(records, send, MOST_CHANGES, lambda record: sum(each.size for each in record.entries)), made


def _arguments(record: Record) -> tuple[bytes, ...]:
    claim = [record.queue, record.state, record.fence, record.attempt, record.due_at, record.started_at or 0, record.finished_at or 0]
    kept: list[Any] = [*claim, record.worker, record.pushed_at, record.priority, record.attempts, record.group]
    kept += [record.timeout, record.key, record.trace, record.cost, record.unique and record.unique.stored, record.follows]
    kept += [record.on_dead == "run", record.parked]
    facts = [False if each is None else each for each in kept]
    error = pack_error(record.error) if record.error else b""
    return (
        to_bytes(record.id), msgpack.packb(facts), encoded(record.data), encoded(record.result), encoded(record.progress), error,
        "\n".join(record.log).encode(), b"".join(map(to_bytes, dict.fromkeys(record.after))),
    )  # fmt: skip
