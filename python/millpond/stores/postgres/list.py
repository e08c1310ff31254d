from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import JobFilter, Listed, Page, State
from millpond.queues import Group, GroupLimits
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.wire import record_of
from millpond.stores.wire import read, to_json


def jobs_in(calls: Calls, queue: str, state: State, limit: int, after: str | None, filter: JobFilter | None) -> Page:
    given = {"queue": queue, "state": state, "limit": limit, "after": after, "filter": to_json(filter)}
    jobs, next = calls.rows("list", **given)[0]
    return Page([Listed(**vars(record_of(told)), cursor=told["cursor"]) for told in jobs], next)


def groups(calls: Calls, queue: str, limit: int, after: str | None, group: str | None) -> Sequence[Group]:
    rows = calls.rows("groups", queue=queue, limit=limit, after=after, group=group, now=calls.now)
    return [read(Group, told, limits=told["limits"] and read(GroupLimits, told["limits"])) for (told,) in rows]
