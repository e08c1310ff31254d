from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from millpond.jobs import Record, RestoreOutcome
from millpond.stores.redis.connection import MOST_CHANGES, Connection
from millpond.stores.redis.wire import encoded, pack_error, to_bytes


def restore(connection: Connection, records: Sequence[Record]) -> tuple[Sequence[RestoreOutcome], bool]:
    """The outcomes, and whether a queue came into being."""
    made = False

    def send(some: Sequence[Record]) -> list[RestoreOutcome]:
        nonlocal made
        is_new, *outcomes = connection.script("restore", None, [], [each for record in some for each in _arguments(record)])
        made = made or is_new == 1
        return ["existing" if outcome else "restored" for outcome in outcomes]

    return connection.in_chunks(records, send, MOST_CHANGES), made


def _arguments(record: Record) -> tuple[bytes, ...]:
    claim = [record.queue, record.state, record.fence, record.attempt, record.due_at, record.started_at or 0, record.finished_at or 0]
    kept: list[Any] = [*claim, record.worker, record.pushed_at, record.priority, record.attempts, record.group]
    kept += [record.timeout, record.key, record.trace, record.cost, record.unique and record.unique.stored, record.follows]
    kept.append(record.on_dead == "run")
    facts = [False if each is None else each for each in kept]
    error = pack_error(record.error) if record.error else b""
    return (
        to_bytes(record.id), msgpack.packb(facts), encoded(record.data), encoded(record.result), encoded(record.progress), error,
        "\n".join(record.log).encode(), b"".join(map(to_bytes, dict.fromkeys(record.after))),
    )  # fmt: skip
