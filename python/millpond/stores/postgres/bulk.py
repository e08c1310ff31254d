from __future__ import annotations

from millpond.jobs import BulkChange, BulkStep, JobFilter, State
from millpond.stores.postgres.calls import Calls
from millpond.stores.wire import to_json


def bulk(
    calls: Calls, queue: str, state: State, change: BulkChange, limit: int, after: str | None,
    filter: JobFilter | None, until: int | None,
) -> BulkStep:  # fmt: skip
    given = {"queue": queue, "state": state, "change": change.kind, "limit": limit, "after": after, "filter": to_json(filter)}
    update = {"priority": change.priority, "run_at": change.run_at}
    looked, matched, changed, sample, next, at = calls.rows("bulk", **given, **update, until=until, now=calls.now)[0]
    return BulkStep(looked, matched, changed, [str(id) for id in sample], next, at)
