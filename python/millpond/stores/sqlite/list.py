from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from millpond.contract import DEFAULTS
from millpond.jobs import FINAL, DataFilter, JobFilter, Listed, Page, State, cursor_fields
from millpond.queues import Group, GroupLimits
from millpond.stores.sqlite.find import record_of
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import read

FIRST: Final[Mapping[str, int]] = {"waiting": 10, "blocked": 1 - 2**53, "scheduled": 1 - 2**53, "running": 1 - 2**53}
"""Where the first page begins, by what orders the state. Final ones: at the end of time."""
MOST_LOOKED_AT: Final = DEFAULTS["store"]["look"]
LOOK: Final = 100
"""Jobs that a filter looks at: in a call, unless its limit is higher, and at a time."""
LOOK_OF_LINES: Final = 1000
"""Of a grouped queue's waiting jobs, which are merged of all lines by each statement."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Data that a filter by text looks at in a call."""


def jobs_in(
    tx: Transaction, queue: str, state: State, limit: int, after: str | None, filter: JobFilter | None
) -> Page:
    key, seq = map(int, cursor_fields(state, after)[:2]) if after else (FIRST.get(state, 2**53 - 1), -1)
    jobs: list[Listed] = []
    looked_at = size = 0
    while looked_at < max(limit, MOST_LOOKED_AT) and size < MOST_BYTES:
        look = LOOK_OF_LINES if is_in_lines(tx, queue, state) else LOOK
        count = look if filter else limit
        places = places_in(tx, queue, state, key, seq, count, filter.group if filter else None)
        passing = {row["seq"]: row for row in matching(tx, places, filter)} if filter else None
        for place in places:
            key, seq = place["key"], place["seq"]
            if passing is not None:
                size += passing[seq]["bytes"]
                if not passing[seq]["matches"]:
                    continue
            if row := tx.row("list/job", seq=seq):
                jobs.append(Listed(**vars(record_of(tx, row)), cursor=f"{state}.{key}.{seq}"))
            if len(jobs) == limit:
                return Page(jobs, f"{state}.{key}.{seq}")
        if len(places) < count:
            return Page(jobs, None)
        looked_at += len(places)
    return Page(jobs, f"{state}.{key}.{seq}")


def is_in_lines(tx: Transaction, queue: str, state: State) -> bool:
    """Whether its jobs wait in lines, a line per group."""
    known = tx.queue(queue)
    return state == "waiting" and bool(known and known.grouped)


def places_in(
    tx: Transaction, queue: str, state: State, key: int, seq: int, limit: int, group: str | None
) -> Sequence[sqlite3.Row]:
    statement = "lines" if is_in_lines(tx, queue, state) else "final" if state in FINAL else state
    return tx.rows(f"list/{statement}", queue=queue, state=state, limit=limit, key=key, seq=seq, group=group)


def matching(tx: Transaction, places: Sequence[sqlite3.Row], filter: JobFilter) -> Sequence[sqlite3.Row]:
    given = dict(vars(filter))
    data: DataFilter | None = given.pop("data")
    return tx.rows(
        "list/matching",
        seqs=json.dumps([place["seq"] for place in places]),
        data_path=data and json.dumps(data.path),
        data_value=data and data.value,
        data_number=data and data.number,
        **given,
    )


def groups(tx: Transaction, queue: str, limit: int, after: str | None, group: str | None) -> Sequence[Group]:
    rows = tx.rows("groups/list", queue=queue, limit=limit, after=after, group=group)
    return [_group(json.loads(row["record"])) for row in rows]


def _group(told: dict[str, Any]) -> Group:
    return read(Group, told | {"limits": told["limits"] and read(GroupLimits, told["limits"])})
