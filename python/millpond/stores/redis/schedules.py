"""Schedules lie under keys of the whole store, the jobs that they push in the queues' partitions: contract/redis/README.md, "fire"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgpack

from millpond.jobs import NewJob, Pushed
from millpond.schedules import (
    MOST_DUE, STILL_DECLARED, Declaration, DeclareOutcome, Fired, Firing, ScheduledJob, ScheduleRecord,
)
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.push import Decision, Pusher
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, partition_of
from millpond.stores.redis.wire import decoded, encoded, list_before, to_bytes, to_id

_TIMING = ("version", "when", "tz", "missed", "jitter", "start", "until", "paused")
_KEPT = (*_TIMING, "planned", "next_at", "changed_at", "seen_at", "last_at", "former")
_JOB = ("queue", "priority", "key", "group", "cost", "attempts", "timeout")
_PUSHED = ("queue", "priority", "delay", "run_at", "attempts", "timeout", "group", "key", "trace", "cost")


def declare(registry: Registry, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
    if not schedules:
        return []
    lists = [
        [False if value is None else value for value in (each.name, *(getattr(each, name) for name in _TIMING), each.again)]
        for each in schedules
    ]
    packed = msgpack.packb([registry.connection.now(), lists])
    jobs = [msgpack.packb([getattr(each.job, name) for name in _JOB]) + encoded(each.job.data) for each in schedules]
    return [outcome.decode() for outcome in registry.on_keys("declare", [packed, *jobs])]


def schedules(registry: Registry, limit: int, after: str | None, name: str | None) -> Sequence[ScheduleRecord]:
    now, *told = registry.on_keys("schedules", [_now(registry), limit, after or "", name or ""])
    return _records(told, now)


def pause_schedule(registry: Registry, name: str, paused: bool) -> bool:
    return bool(registry.on_keys("pause-schedule", [_now(registry), name, int(paused)])[0])


def remove_schedule(registry: Registry, name: str) -> bool:
    return bool(registry.on_keys("remove-schedule", [name])[0])


class Firings:
    """`pushers`: what they have pushed, for bells and lost settings."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self.pushers = registry, list[Pusher]()

    def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        roomy = self._with_room(firings)
        asked = [firing for firing, has_room in zip(firings, roomy, strict=True) if has_room]
        decision, taken = self._decide(asked) if asked else (Decision(0, 0), [])
        decided = iter(taken)
        answers = [Fired("fired" if next(decided) else "stale") if has_room else Fired("full") for has_room in roomy]
        fired = [at for at, answer in enumerate(answers) if answer.status == "fired"]
        pushed = self._finish([firings[at].jobs for at in fired], decision)
        for at, outcomes in zip(fired, pushed, strict=True):
            answers[at] = Fired("fired", outcomes)
        return answers

    def due(self) -> tuple[int, Sequence[ScheduleRecord], int | None]:
        """Of a sweep: pushes the jobs of firings that a process has left. The answer is the time, what is due, and when the next is."""
        now, since, next_at, count, *told = self._registry.on_keys("due-schedules", [_now(self._registry), MOST_DUE])
        self._finish([_jobs_of(value) for _, value in chunks(told[2 * count :], 2)], Decision(now, since))
        return now, _records(told[: 2 * count], now), None if next_at < 0 else next_at

    def _decide(self, firings: Sequence[Firing]) -> tuple[Decision, list[bool]]:
        lists = [[each.name, each.version, each.expected, False if each.next is None else each.next] for each in firings]
        items: list[bytes] = [msgpack.packb([self._registry.connection.now(), lists])]
        for each in firings:
            items += [to_bytes(each.jobs[0].id), _packed(each.jobs)] if each.jobs else [b"", b""]
        now, since, *taken = self._registry.on_keys("firing", items)
        return Decision(now, since), [answer == 1 for answer in taken]

    def _finish(self, lists: Sequence[Sequence[NewJob]], decision: Decision) -> list[Sequence[Pushed]]:
        pusher = Pusher(self._registry, [job for jobs in lists for job in jobs], decision)
        self.pushers.append(pusher)
        left = iter(pusher.outcomes())
        pushed = [[next(left) for _ in jobs] for jobs in lists]
        # What the queue can never take is not tried again.
        over = [
            to_bytes(jobs[0].id)
            for jobs, outcomes in zip(lists, pushed, strict=True)
            if jobs and all(each.error is None or each.error.code == "NotSupported" for each in outcomes)
        ]
        if over:
            self._registry.on_keys("fired", over)
        for outcome in (each for outcomes in pushed for each in outcomes):
            if outcome.error:
                raise outcome.error
        return list(pushed)

    def _with_room(self, firings: Sequence[Firing]) -> list[bool]:
        room: dict[Part, float] = {}
        answers = []
        for firing in firings:
            wanted: dict[Part, int] = {}
            for job in firing.jobs:
                parts = self._registry.parts(job.queue)
                part = parts[partition_of(job.id, job.key, job.group, len(parts))]
                wanted[part] = wanted.get(part, 0) + 1
            for part in wanted.keys() - room.keys():
                (free,) = self._registry.connection.on_part("room", part)
                room[part] = math.inf if free < 0 else free
            fits = all(room[part] >= count for part, count in wanted.items())
            for part, count in wanted.items() if fits else ():
                room[part] -= count
            answers.append(fits)
        return answers


def _packed(jobs: Sequence[NewJob]) -> bytes:
    """[data, jobs]: jobs of one firing mostly have the same data, which are sent once."""
    data = list(dict.fromkeys(encoded(job.data) for job in jobs))
    lists = [
        [to_bytes(job.id), *(getattr(job, name) for name in _PUSHED), data.index(encoded(job.data))] for job in jobs
    ]
    return bytes(msgpack.packb([data, lists]))


def _jobs_of(value: bytes) -> Sequence[NewJob]:
    _, rest = list_before(value)
    data, lists = msgpack.unpackb(rest)
    return [
        NewJob(id=to_id(id), **dict(zip(_PUSHED, fields, strict=True)), data=_body(data[place])) for id, *fields, place in lists
    ]


def _records(told: Sequence[bytes], now: int) -> list[ScheduleRecord]:
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


def _now(registry: Registry) -> int | str:
    now = registry.connection.now()
    return "" if now is None else now
