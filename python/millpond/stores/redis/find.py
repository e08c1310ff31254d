"""Reads jobs by id."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import Record
from millpond.stores.redis.connection import Connection, chunks
from millpond.stores.redis.wire import DESCRIBED, described, to_bytes


def find(connection: Connection, ids: Sequence[str]) -> Sequence[Record | None]:
    def ask(some: Sequence[str]) -> list[Record | None]:
        # Where jobs are large, the last ones are left to another call.
        late, *told = connection.script("find", None, [], [to_bytes(id) for id in some])
        found = {record.id: record for record, *_ in (described(each) for each in chunks(told, DESCRIBED))}
        return [found.get(id) for id in some[: len(some) - late]]

    return connection.in_chunks(ids, ask)


def ahead(connection: Connection, id: str) -> int | None:
    (count,) = connection.script("ahead", None, [], [to_bytes(id)])
    return None if count < 0 else int(count)
