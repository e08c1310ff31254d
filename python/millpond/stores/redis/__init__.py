"""The Redis store, on a single server. Each operation is one call of a script per partition of a queue."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from redis.exceptions import RedisError

from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, BulkChange, BulkStep, Claimed, JobFilter, JobUpdate, NewJob, Page, Pushed, Record, Relatives, Removed, Requeued,
    RestoreOutcome, State, Swept, UpdateOutcome,
)
from millpond.queues import Group, GroupLimits, QueueStats, SettingsReport, Slice, WorkerBeat, WorkerRecord
from millpond.schedules import Declaration, DeclareOutcome, DueSchedules, Fired, Firing, ScheduleRecord
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.redis import schedules as scheduling
from millpond.stores.redis import workers as working
from millpond.stores.redis.awaited import Awaited
from millpond.stores.redis.bulk import bulk
from millpond.stores.redis.cancel import cancel
from millpond.stores.redis.claim import Claims
from millpond.stores.redis.configure import Configurer
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.end import Endings
from millpond.stores.redis.find import ahead, find
from millpond.stores.redis.graph_push import push_graph
from millpond.stores.redis.links import Links
from millpond.stores.redis.list import groups, page
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.push import Pusher
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.relatives import relatives
from millpond.stores.redis.remove import remove_jobs, remove_of
from millpond.stores.redis.requeue import requeue_dead, requeue_jobs
from millpond.stores.redis.restore import restore
from millpond.stores.redis.server import Server
from millpond.stores.redis.stats import record, stats, stats_of
from millpond.stores.redis.sweep import Sweep
from millpond.stores.redis.update import update

T = TypeVar("T")


class RedisStore(Store):
    """`partitions` of the queues that this store registers first. `prefix` begins every key."""

    def __init__(self, url: str, prefix: str = "millpond", partitions: int = 1, clock: Clock | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", prefix) or not 1 <= partitions <= 256:
            raise MillpondError("InvalidOption", "a prefix has 1 to 64 of A–Z a–z 0–9 _ - . and partitions are 1 to 256")
        origin = secrets.token_hex(8)
        self._connection = Connection(url, prefix, origin, clock)
        self._registry = Registry(self._connection, prefix, partitions)
        self._notifier = Notifier(self._connection, origin, lambda: self._ring)
        self._links = Links(self._registry, self._notifier)
        self._connection.settle = self._links.settle
        self._awaited = Awaited(self._registry, self._links)
        self._claims = Claims(self._registry)
        self._configurer = Configurer(self._registry, self._notifier)
        self._endings = Endings(self._registry, self._notifier)
        self._server = Server(self._connection)
        self._server.check()
        self._registry.check_version()

    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        return self._configurer.configure(queue, settings, by, clear)

    def settings(self, queue: str) -> SettingsReport | None:
        return self._configurer.settings(queue)

    def heartbeat(self, workers: Sequence[WorkerBeat], gone: Sequence[str] = ()) -> Sequence[bool]:
        return working.heartbeat(self._registry, workers, gone)

    def workers(self, queue: str | None = None) -> Sequence[WorkerRecord]:
        return working.workers(self._registry, queue)

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        self._configurer.limit_group(queue, group, limits)

    def push(self, jobs: Sequence[NewJob], tx: Any = None, whole: bool = False) -> Sequence[Pushed]:
        if tx is not None:
            raise MillpondError("NotSupported", "Redis is not the caller's database")
        pushers: Sequence[Pusher] = []
        try:
            if jobs and (whole or any(job.after or job.part_of for job in jobs)):
                pushed, pushers = push_graph(self._registry, self._links, jobs, whole)
            else:
                pushers = [Pusher(self._registry, jobs, links=self._links)]
                pushed = pushers[0].push()
        finally:
            for pusher in pushers:
                self._after(pusher)
        if self._awaited.count:
            self._awaited.arrived([each.id for each in pushed if each.status == "pushed"])
        return pushed

    def _after(self, pusher: Pusher) -> None:
        for queue in pusher.lost_settings:
            self._configurer.restore(queue)
        for queue in pusher.pushed_to:
            self._notifier.ring("work", queue)

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        self._notifier.claimed_from.add(queue)
        found, known = self._claims.claim(queue, worker, limit, lease, min_priority, per_group)
        if not known:
            self._registry.known.pop(queue, None)
            if self._registry.has_lost(queue):
                self._configurer.restore(queue)
        if found.jobs:
            self._notifier.ring("room", queue)
        return found

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        return self._endings.end(op, queue, items, lease)

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        return cancel(self._registry, self._notifier, ids)

    def sweep(self, limit: int) -> Swept:
        self._claims.settle()
        self._server.look_at_eviction()
        sweep = Sweep(self._registry, limit, self._links, self._awaited)
        swept = sweep.swept
        try:
            sweep.run()
            trouble = self._look_at_schedules(swept)
            if swept.queues < len(self._registry.known):
                self._relist()
        except MillpondError as error:
            trouble = error
        for queue in sweep.woken:
            self._notifier.ring("work", queue)
        for lost in swept.lost:
            if lost.state == "dead":
                self._notifier.ring("finished", lost.queue, (lost.id,))
        # The answer is the only report of what was done, such as of lost claims.
        if trouble and not (swept.lost or swept.promoted or swept.expired or swept.schedules):
            raise trouble
        return swept

    def _look_at_schedules(self, swept: Swept) -> MillpondError | None:
        now, due, next_at, error = self._firing(lambda firings: firings.due())
        if next_at is not None:
            swept.next_due = min(next_at - now, next_at if swept.next_due is None else swept.next_due)
        if due:
            swept.schedules = DueSchedules(now, due)
        return error

    def _relist(self) -> None:
        """The registry has lost some of the queues that this client knows."""
        for queue in self._registry.known.keys() - self._registry.all().keys():
            if sum(stats_of(self._registry, queue, 0).counts.values()) > 0:
                self._registry.register(queue)
            else:
                self._registry.known.pop(queue)

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        return find(self._registry, ids)

    def ahead(self, id: str) -> int | None:
        return ahead(self._registry, id)

    def relatives(self, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
        return relatives(self._registry, ids, limit)

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        return stats(self._registry, queue, minutes)

    def record(self, slices: Sequence[Slice]) -> None:
        record(self._registry, slices)

    def list(
        self, queue: str, state: State, limit: int, after: str | None = None, filter: JobFilter | None = None
    ) -> Page:
        return page(self._registry, queue, state, limit, after, filter)

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        return groups(self._registry, queue, limit, after, group)

    def update(self, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
        return update(self._registry, self._notifier, items)

    def requeue(
        self, *, ids: Sequence[str] | None = None, queue: str = "", limit: int = 1000, until: int | None = None
    ) -> Requeued:
        if ids is not None:
            return requeue_jobs(self._registry, self._notifier, ids)
        return requeue_dead(self._registry, self._notifier, queue, limit, until)

    def remove(
        self, *, ids: Sequence[str] | None = None, queue: str = "", state: State | None = None, limit: int = 1000
    ) -> Removed:
        if ids is not None:
            return remove_jobs(self._registry, self._notifier, ids)
        removed = remove_of(self._registry, self._notifier, queue, state, limit)
        if state is None and not removed.more:
            self._configurer.forget(queue)
        return removed

    def bulk(
        self, queue: str, state: State, change: BulkChange, limit: int, after: str | None = None, filter: JobFilter | None = None,
        until: int | None = None,
    ) -> BulkStep:  # fmt: skip
        return bulk(self._registry, self._notifier, queue, state, change, limit, after, filter, until)

    def restore(self, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
        return restore(self._registry, self._notifier, self._awaited, records)

    def declare(self, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
        return scheduling.declare(self._registry, schedules)

    def schedules(self, limit: int, after: str | None = None, name: str | None = None) -> Sequence[ScheduleRecord]:
        return scheduling.schedules(self._registry, limit, after, name)

    def _pause_schedule(self, name: str, paused: bool) -> bool:
        return scheduling.pause_schedule(self._registry, name, paused)

    def _remove_schedule(self, name: str) -> bool:
        return scheduling.remove_schedule(self._registry, name)

    def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        return self._firing(lambda each: each.fire(firings))

    def _firing(self, work: Callable[[scheduling.Firings], T]) -> T:
        firings = scheduling.Firings(self._registry, self._links)
        try:
            return work(firings)
        finally:
            for pusher in firings.pushers:
                self._after(pusher)

    def begin(self) -> HandlerTransaction:
        raise MillpondError("NotSupported", "Redis is not the caller's database")

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        return self._notifier.bells(over)

    def _close(self) -> None:
        self._connection.closed = True
        with suppress(RedisError):  # it was closed by the server
            self._connection.client.close()
