"""As contract/postgres/schedules.sql has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from millpond.schedules import Declaration, DeclareOutcome, Fired, Firing, ScheduledJob, ScheduleRecord, timing_of
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.push import fields_of_job, pushed_of
from millpond.stores.postgres.wire import tagged, untagged
from millpond.stores.wire import read


def declare(calls: Calls, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
    items = [{**timing_of(each), "job": vars(each.job) | {"data": tagged(each.job.data)}} for each in schedules]
    outcomes: Sequence[DeclareOutcome] = calls.answer("declare_schedules", items=json.dumps(items), now=calls.now) if items else []
    return outcomes


def schedules(calls: Calls, limit: int, after: str | None, name: str | None) -> Sequence[ScheduleRecord]:
    rows = calls.rows("list_schedules", limit=limit, after=after, name=name, now=calls.now)
    return [record_of(row[0]) for row in rows]


def pause_schedule(calls: Calls, name: str, paused: bool) -> bool:
    return bool(calls.answer("pause_schedule", name=name, paused=paused, now=calls.now))


def remove_schedule(calls: Calls, name: str) -> bool:
    return bool(calls.answer("remove_schedule", name=name))


def fire(calls: Calls, firings: Sequence[Firing]) -> Sequence[Fired]:
    if not firings:
        return []
    given = [vars(each) | {"jobs": [fields_of_job(job) for job in each.jobs]} for each in firings]
    told = calls.answer("fire", firings=json.dumps(given), now=calls.now)
    return [Fired(each["status"], pushed_of(calls, each["jobs"]) if "jobs" in each else None) for each in told]


def record_of(told: Mapping[str, Any]) -> ScheduleRecord:
    job = told["job"]
    own = ScheduledJob(**{**job, "data": untagged(job["data"])})
    return read(ScheduleRecord, told, start=told["from"], job=own)
