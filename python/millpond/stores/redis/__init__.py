"""The Redis store, on a single server. Each operation is one script."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from redis.exceptions import RedisError

from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, BulkChange, BulkStep, Claimed, JobFilter, JobOutcome, JobUpdate, NewJob, Page, Pushed, Record, Relatives, Removed, Requeued,
    RestoreOutcome, State, Swept, UpdateOutcome,
)
from millpond.queues import Group, GroupLimits, QueueStats, SettingsReport, Slice, WorkerBeat, WorkerRecord
from millpond.schedules import Declaration, DeclareOutcome, Fired, Firing, ScheduleRecord
from millpond.steps import EntriesFrom, EntriesPage, Signal, Signalled
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.redis import schedules as scheduling
from millpond.stores.redis import workers as working
from millpond.stores.redis.bulk import bulk
from millpond.stores.redis.cancel import cancel
from millpond.stores.redis.claim import Claims
from millpond.stores.redis.configure import Configurer
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.end import Endings
from millpond.stores.redis.find import ahead, find, outcomes
from millpond.stores.redis.journal import entries, signal
from millpond.stores.redis.list import groups, page
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.push import push
from millpond.stores.redis.relatives import relatives
from millpond.stores.redis.remove import remove_jobs, remove_of
from millpond.stores.redis.requeue import requeue_dead, requeue_jobs
from millpond.stores.redis.restore import restore
from millpond.stores.redis.server import Server
from millpond.stores.redis.stats import record, stats
from millpond.stores.redis.sweep import sweep
from millpond.stores.redis.update import update
from millpond.stores.redis.version import check_version


class RedisStore(Store):
    """`prefix` begins every key."""

    def __init__(self, url: str, prefix: str = "millpond", clock: Clock | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", prefix):
            raise MillpondError("InvalidOption", "a prefix has 1 to 64 of A–Z a–z 0–9 _ - .")
        origin = secrets.token_hex(8)
        self._connection = Connection(url, prefix, origin, clock)
        self._notifier = Notifier(self._connection, origin, lambda: self._ring)
        self._claims = Claims(self._connection)
        self._configurer = Configurer(self._connection, self._notifier)
        self._endings = Endings(self._connection, self._notifier)
        self._server = Server(self._connection)
        self._server.check()
        check_version(self._connection)

    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        return self._configurer.configure(queue, settings, by, clear)

    def settings(self, queue: str) -> SettingsReport | None:
        return self._configurer.settings(queue)

    def heartbeat(self, workers: Sequence[WorkerBeat], gone: Sequence[str] = ()) -> Sequence[bool]:
        return working.heartbeat(self._connection, workers, gone)

    def workers(self, queue: str | None = None) -> Sequence[WorkerRecord]:
        return working.workers(self._connection, queue)

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        self._configurer.limit_group(queue, group, limits)

    def push(self, jobs: Sequence[NewJob], tx: Any = None, whole: bool = False) -> Sequence[Pushed]:
        if tx is not None:
            raise MillpondError("NotSupported", "Redis is not the caller's database")
        pushed, made = push(self._connection, jobs, whole) if jobs else ([], False)
        self._after([job.queue for job, outcome in zip(jobs, pushed, strict=True) if outcome.status == "pushed"], made)
        return pushed

    def _after(self, queues: Iterable[str], made: bool) -> None:
        for queue in dict.fromkeys(queues):
            if made:
                self._configurer.restore(queue)
            self._notifier.ring("work", queue)

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        self._notifier.claimed_from.add(queue)
        found, is_lost = self._claims.claim(queue, worker, limit, lease, min_priority, per_group)
        if is_lost:
            self._configurer.restore(queue)
        if found.jobs:
            self._notifier.ring("room", queue)
        return found

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        return self._endings.end(op, queue, items, lease)

    def entries(self, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
        return entries(self._connection, items)

    def signal(self, items: Sequence[Signal]) -> Sequence[Signalled]:
        return signal(self._connection, self._notifier, items)

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        return cancel(self._connection, self._notifier, ids)

    def sweep(self, limit: int) -> Swept:
        self._claims.settle()
        self._server.look_at_eviction()
        swept, woken = sweep(self._connection, limit)
        for queue in woken:
            self._notifier.ring("work", queue)
        for lost in swept.lost:
            if lost.state == "dead":
                self._notifier.ring("finished", lost.queue, (lost.id,))
        return swept

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        return find(self._connection, ids)

    def outcomes(self, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
        return outcomes(self._connection, ids)

    def ahead(self, id: str) -> int | None:
        return ahead(self._connection, id)

    def relatives(self, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
        return relatives(self._connection, ids, limit)

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        return stats(self._connection, queue, minutes)

    def record(self, slices: Sequence[Slice]) -> None:
        record(self._connection, slices)

    def list(
        self, queue: str, state: State, limit: int, after: str | None = None, filter: JobFilter | None = None
    ) -> Page:
        return page(self._connection, queue, state, limit, after, filter)

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        return groups(self._connection, queue, limit, after, group)

    def update(self, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
        return update(self._connection, self._notifier, items)

    def requeue(
        self, *, ids: Sequence[str] | None = None, queue: str = "", limit: int = 1000, until: int | None = None,
        forget: int | None = None,
    ) -> Requeued:  # fmt: skip
        if ids is not None:
            return requeue_jobs(self._connection, self._notifier, ids, forget)
        return requeue_dead(self._connection, self._notifier, queue, limit, until)

    def remove(
        self, *, ids: Sequence[str] | None = None, queue: str = "", state: State | None = None, limit: int = 1000
    ) -> Removed:
        if ids is not None:
            return remove_jobs(self._connection, self._notifier, ids)
        removed = remove_of(self._connection, self._notifier, queue, state, limit)
        if state is None and not removed.more:
            self._configurer.forget(queue)
        return removed

    def bulk(
        self, queue: str, state: State, change: BulkChange, limit: int, after: str | None = None, filter: JobFilter | None = None,
        until: int | None = None,
    ) -> BulkStep:  # fmt: skip
        return bulk(self._connection, self._notifier, queue, state, change, limit, after, filter, until)

    def restore(self, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
        outcomes, made = restore(self._connection, records)
        self._after([record.queue for record in records], made)
        return outcomes

    def declare(self, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
        return scheduling.declare(self._connection, schedules)

    def schedules(self, limit: int, after: str | None = None, name: str | None = None) -> Sequence[ScheduleRecord]:
        return scheduling.schedules(self._connection, limit, after, name)

    def _pause_schedule(self, name: str, paused: bool) -> bool:
        return scheduling.pause_schedule(self._connection, name, paused)

    def _remove_schedule(self, name: str) -> bool:
        return scheduling.remove_schedule(self._connection, name)

    def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        fired, made = scheduling.fire(self._connection, firings)
        self._after([job.queue for firing in firings for job in firing.jobs], made)
        return fired

    def begin(self) -> HandlerTransaction:
        raise MillpondError("NotSupported", "Redis is not the caller's database")

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        return self._notifier.bells(over)

    def _close(self) -> None:
        self._connection.closed = True
        with suppress(RedisError):  # it was closed by the server
            self._connection.client.close()
