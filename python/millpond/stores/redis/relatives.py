from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.jobs import Relatives
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.wire import to_bytes, to_id


def relatives(connection: Connection, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
    def ask(some: Sequence[str]) -> list[Relatives | None]:
        answers = connection.script("relatives", None, [limit], [to_bytes(id) for id in some])
        return [_relatives(*each) if each else None for each in answers]

    return connection.in_chunks(ids, ask)


def _relatives(queue: bytes, state: bytes, runs: int, more: int, parents: bytes, children: bytes, gone: bytes) -> Relatives:
    told: Any = state.decode()
    return Relatives(queue.decode(), told, "run" if runs else "cancel", _ids(parents), _ids(gone), _ids(children), more == 1)


def _ids(given: bytes) -> list[str]:
    return [to_id(given[at : at + 16]) for at in range(0, len(given), 16)]
