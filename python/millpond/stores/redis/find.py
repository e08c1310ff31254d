"""Reads jobs by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.jobs import JobOutcome, Record
from millpond.stores.redis.connection import MOST_ITEMS, Connection, chunks
from millpond.stores.redis.wire import DESCRIBED, decoded, described, to_bytes, unpack_error


def find(connection: Connection, ids: Sequence[str]) -> Sequence[Record | None]:
    def ask(some: Sequence[str]) -> list[Record | None]:
        # Where jobs are large, the last ones are left to another call.
        late, *told = connection.script("find", None, [], [to_bytes(id) for id in some])
        found = {record.id: record for record, *_ in (described(each) for each in chunks(told, DESCRIBED))}
        return [found.get(id) for id in some[: len(some) - late]]

    return connection.in_chunks(ids, ask)


def outcomes(connection: Connection, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
    some = ids[:MOST_ITEMS]
    answers = connection.script("outcomes", None, [], [to_bytes(id) for id in some]) if some else []
    return [each and _outcome(id, *each) for id, each in zip(some, answers)]


def _outcome(id: str, queue: bytes, state: bytes, attempt: Any, attempts: Any, error: Any, result: Any) -> JobOutcome:
    told: Any = state.decode()
    return JobOutcome(id, queue.decode(), told, int(attempt), int(attempts), decoded(result), unpack_error(error))


def ahead(connection: Connection, id: str) -> int | None:
    (count,) = connection.script("ahead", None, [], [to_bytes(id)])
    return None if count < 0 else int(count)
