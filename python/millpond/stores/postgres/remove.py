from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import Removed, State
from millpond.stores.postgres.calls import Calls


def remove(calls: Calls, ids: Sequence[str] | None, queue: str, state: State | None, limit: int) -> Removed:
    given = {"queue": queue, "state": state, "limit": limit} if ids is None else {"ids": list(ids)}
    removed, more, _queues = calls.rows("remove", **given, now=calls.now)[0]
    return Removed(removed, more)
