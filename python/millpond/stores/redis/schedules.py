"""Schedules: contract/redis/scheduled.lua."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgpack

from millpond.schedules import STILL_DECLARED, Declaration, DeclareOutcome, Fired, Firing, ScheduledJob, ScheduleRecord
from millpond.stores.redis.connection import Connection, chunks
from millpond.stores.redis.push import outcome_of, push_arguments
from millpond.stores.redis.wire import decoded, encoded, list_before

_TIMING = ("version", "when", "tz", "missed", "jitter", "start", "until", "paused")
_KEPT = (*_TIMING, "planned", "next_at", "changed_at", "seen_at", "last_at", "former")
_JOB = ("queue", "priority", "key", "group", "cost", "attempts", "timeout")
FATES: Final = ("stale", "fired", "full")


def declare(connection: Connection, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
    if not schedules:
        return []
    lists = [
        [False if value is None else value for value in (each.name, *(getattr(each, name) for name in _TIMING), each.again)]
        for each in schedules
    ]
    jobs = [msgpack.packb([getattr(each.job, name) for name in _JOB]) + encoded(each.job.data) for each in schedules]
    return [outcome.decode() for outcome in connection.script("declare", None, [lists], jobs)]


def schedules(connection: Connection, limit: int, after: str | None, name: str | None) -> Sequence[ScheduleRecord]:
    found: list[ScheduleRecord] = []
    while True:
        now, more, *told = connection.script("schedules", None, [limit - len(found), after, name])
        found += records_of(told, now)
        if not more or len(found) >= limit:
            return found
        after = found[-1].name


def pause_schedule(connection: Connection, name: str, paused: bool) -> bool:
    return bool(connection.script("pause-schedule", None, [name, paused])[0])


def remove_schedule(connection: Connection, name: str) -> bool:
    return bool(connection.script("remove-schedule", None, [name])[0])


def fire(connection: Connection, firings: Sequence[Firing]) -> tuple[Sequence[Fired], bool]:
    """What became of them, and whether a queue came into being."""
    if not firings:
        return [], False
    head, items = push_arguments([job for firing in firings for job in firing.jobs])
    lists = [[each.name, each.version, each.expected, False if each.next is None else each.next, len(each.jobs)] for each in firings]
    made, *answers = connection.script("fire", None, [*head, lists], items)
    left = iter(answers[len(firings) :])
    fired = []
    for firing, fate in zip(firings, answers):
        pushed = [outcome_of(next(left), job.id) for job in firing.jobs]
        status: Any = FATES[fate]
        fired.append(Fired(status, pushed) if status == "fired" else Fired(status))
    return fired, made == 1


def records_of(told: Sequence[bytes], now: int) -> list[ScheduleRecord]:
    return [_record(name.decode(), value, now) for name, value in chunks(told, 2)]


def _record(name: str, value: bytes, now: int) -> ScheduleRecord:
    fields, rest = list_before(value)
    kept = dict(zip(_KEPT, fields, strict=True))
    del kept["former"]
    for time in ("start", "until", "next_at", "last_at"):
        kept[time] = None if kept[time] is False else int(kept[time])
    declared = kept.pop("seen_at") + STILL_DECLARED > now
    job, data = list_before(rest)
    own: dict[str, Any] = dict(zip(_JOB, job, strict=True))
    return ScheduleRecord(**kept, name=name, declared=declared, job=ScheduledJob(**own, data=_body(data)))


def _body(data: bytes) -> Any:
    return decoded(data)
