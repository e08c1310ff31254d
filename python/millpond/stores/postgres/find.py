from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import JobOutcome, Record, Relatives
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.wire import outcome_of, record_of
from millpond.stores.wire import read


def find(calls: Calls, ids: Sequence[str]) -> Sequence[Record | None]:
    found = {row[0]["id"]: record_of(row[0]) for row in calls.rows("find", ids=list(ids))}
    return [found.get(id) for id in ids]


def outcomes(calls: Calls, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
    found = [row[0] and outcome_of(row[0]) for row in calls.rows("outcomes", ids=list(ids), listener=calls.listener)]
    for outcome in found:
        if outcome:
            calls.ask("finished", outcome.queue)
    return found


def ahead(calls: Calls, id: str) -> int | None:
    ahead: int | None = calls.answer("ahead", id=id)
    return ahead


def relatives(calls: Calls, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
    found = calls.answer("relatives", ids=list(ids), limit=limit) or []
    return [each and read(Relatives, each) for each in found]
