from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import Requeued
from millpond.stores.postgres.calls import Calls


def requeue(
    calls: Calls, ids: Sequence[str] | None, queue: str, limit: int, until: int | None, forget: int | None
) -> Requeued:
    if ids is not None and forget is not None:
        at, queues = calls.rows("requeue_from", ids=list(ids), forget=forget, now=calls.now)[0]
        return Requeued(len(queues), at)
    given = {"queue": queue, "limit": limit, "until": until} if ids is None else {"ids": list(ids)}
    at, queues = calls.rows("requeue", **given, now=calls.now)[0]
    return Requeued(len(queues), at)
