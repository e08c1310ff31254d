"""Lists jobs by state, and groups with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from millpond.contract import DEFAULTS
from millpond.jobs import JobFilter, Listed, Page, State, cursor_fields
from millpond.queues import Group, GroupLimits
from millpond.stores.redis.connection import MOST_ITEMS, Argument, Connection, chunks
from millpond.stores.redis.wire import DESCRIBED, chosen_by, described, rate_in, start, to_bytes, unpack_absent

MOST_LOOKED_AT: Final = DEFAULTS["store"]["look"]
"""Jobs that a filter looks at in a call, unless its limit is higher."""
SHORT: Final = 2


def page(
    connection: Connection, queue: str, state: State, limit: int, after: str | None, filter: JobFilter | None
) -> Page:
    last: Sequence[str] | None = cursor_fields(state, after) if after else None
    most_looked_at = max(limit, MOST_LOOKED_AT)
    chosen = filter and chosen_by(filter)
    jobs: list[Listed] = []
    looked_at = 0
    while True:
        most = min(limit - len(jobs) if filter is None else most_looked_at - looked_at, MOST_ITEMS)
        place, items = beyond(last)
        more, only_last, *told = connection.script("list", queue, [state, most, place, chosen], items)
        found = [described(each) for each in chunks(told, DESCRIBED)]
        places = [[str(record.priority), str(at), str(moment), record.id] for record, at, moment in found]
        for (record, *_), at_place in zip(found[: len(found) - only_last][: limit - len(jobs)], places):
            last = at_place
            jobs.append(Listed(**vars(record), cursor=".".join([state, *at_place])))
        if len(jobs) < limit:
            if not more:
                return Page(jobs, None)
            last = places[-1] if places else last
        looked_at += most
        if len(jobs) == limit or filter is not None and (more == SHORT or looked_at >= most_looked_at):
            return Page(jobs, ".".join([state, *(last or ())]))


def beyond(last: Sequence[str] | None) -> tuple[list[int] | None, list[Argument]]:
    """Where the page after that place begins, as list.lua and bulk.lua take it."""
    return ([int(each) for each in last[:3]], [to_bytes(last[3])]) if last else (None, [])


def groups(connection: Connection, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
    if group is not None and after is not None and group <= after:
        return []
    found: list[Group] = []
    while len(found) < limit:
        last, *told = connection.script("groups", queue, [min(limit - len(found), MOST_ITEMS), after, group])
        found += [_group(each) for each in chunks(told, 5)]
        if last is None:
            break
        after = last.decode()
    return found


def _group(told: Sequence[Any]) -> Group:
    name, own, waiting, running, next_start = told
    most, rate, weight = unpack_absent(own) if own else (None, None, 1)
    limits = GroupLimits(most, rate_in(rate), weight) if own else None
    return Group(group=name.decode(), limits=limits, waiting=waiting, running=running, next_start=start(next_start))
