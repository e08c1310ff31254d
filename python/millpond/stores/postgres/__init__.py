"""The PostgreSQL store. Each operation is one call of a function of the contract, in a transaction of its own.

Bells: LISTEN on a connection of its own. While it stands, `listener` is passed with calls that find nothing: the server
notifies once, and only a listener that asked. After each new LISTEN anything may have happened meanwhile, so all that
this store has asked for rings. Behind a pooler nothing is heard: who waits looks once a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg

from millpond.jobs import (
    BELL_KINDS, Bell, BulkChange, BulkStep, Claimed, Completion, JobFilter, JobOutcome, JobUpdate, NewJob, Outcome, Page, Pushed,
    Record, Relatives, Removed, Requeued, RestoreOutcome, State, Swept, UpdateOutcome,
)
from millpond.queues import Group, GroupLimits, QueueStats, SettingsReport, Slice, WorkerBeat, WorkerRecord
from millpond.schedules import Declaration, DeclareOutcome, Fired, Firing, ScheduleRecord
from millpond.steps import EntriesFrom, EntriesPage, Signal, Signalled
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.postgres import configure as configuring
from millpond.stores.postgres import find as looking
from millpond.stores.postgres import list as listing
from millpond.stores.postgres import schedules as scheduling
from millpond.stores.postgres import stats as figures
from millpond.stores.postgres import workers as registry
from millpond.stores.postgres.calls import Calls, json_of
from millpond.stores.postgres.bulk import bulk
from millpond.stores.postgres.cancel import cancel
from millpond.stores.postgres.claim import claim
from millpond.stores.postgres.connection import Connected, ask, coded, connect, run
from millpond.stores.postgres.end import end
from millpond.stores.postgres.journal import entries, signal
from millpond.stores.postgres.push import push, push_within
from millpond.stores.postgres.remove import remove
from millpond.stores.postgres.requeue import requeue
from millpond.stores.postgres.restore import restore
from millpond.stores.postgres.sweep import sweep
from millpond.stores.postgres.update import update
from millpond.stores.postgres.wire import all_tagged, holds, outcomes

SILENCE: Final = 15.0
WAIT: Final = 0.1


class PostgresStore(Store):
    def __init__(self, url: str, schema: str = "millpond", clock: Clock | None = None) -> None:
        self._calls = Calls(url, schema, clock)
        self._connection = self._calls.connection

    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        return configuring.configure(self._calls, queue, settings, by, clear)

    def settings(self, queue: str) -> SettingsReport | None:
        return configuring.settings(self._calls, queue)

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        configuring.limit_group(self._calls, queue, group, limits)

    def push(
        self, jobs: Sequence[NewJob], tx: psycopg.Connection[Any] | None = None, whole: bool = False
    ) -> Sequence[Pushed]:
        return push(self._calls, jobs, whole) if tx is None else push_within(self._calls, tx, jobs, whole)

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        return claim(self._calls, queue, worker, limit, lease, min_priority, per_group)

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        return end(self._calls, op, queue, items, lease)

    def entries(self, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
        return entries(self._calls, items) if items else ()

    def signal(self, items: Sequence[Signal]) -> Sequence[Signalled]:
        return signal(self._calls, items)

    def sweep(self, limit: int) -> Swept:
        return sweep(self._calls, limit)

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        return cancel(self._calls, ids)

    def update(self, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
        return update(self._calls, items)

    def requeue(
        self, *, ids: Sequence[str] | None = None, queue: str = "", limit: int = 1000, until: int | None = None,
        forget: int | None = None,
    ) -> Requeued:  # fmt: skip
        return requeue(self._calls, ids, queue, limit, until, forget)

    def remove(
        self, *, ids: Sequence[str] | None = None, queue: str = "", state: State | None = None, limit: int = 1000
    ) -> Removed:
        return remove(self._calls, ids, queue, state, limit)

    def bulk(
        self, queue: str, state: State, change: BulkChange, limit: int, after: str | None = None, filter: JobFilter | None = None,
        until: int | None = None,
    ) -> BulkStep:  # fmt: skip
        return bulk(self._calls, queue, state, change, limit, after, filter, until)

    def restore(self, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
        return restore(self._calls, records)

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        return looking.find(self._calls, ids)

    def outcomes(self, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
        return looking.outcomes(self._calls, ids)

    def ahead(self, id: str) -> int | None:
        return looking.ahead(self._calls, id)

    def relatives(self, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
        return looking.relatives(self._calls, ids, limit)

    def list(
        self, queue: str, state: State, limit: int, after: str | None = None, filter: JobFilter | None = None
    ) -> Page:
        return listing.jobs_in(self._calls, queue, state, limit, after, filter)

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        return listing.groups(self._calls, queue, limit, after, group)

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        return figures.stats(self._calls, queue, minutes)

    def record(self, slices: Sequence[Slice]) -> None:
        figures.record(self._calls, slices)

    def heartbeat(self, workers: Sequence[WorkerBeat], gone: Sequence[str] = ()) -> Sequence[bool]:
        return registry.heartbeat(self._calls, workers, gone)

    def workers(self, queue: str | None = None) -> Sequence[WorkerRecord]:
        return registry.workers(self._calls, queue)

    def declare(self, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
        return scheduling.declare(self._calls, schedules)

    def schedules(self, limit: int, after: str | None = None, name: str | None = None) -> Sequence[ScheduleRecord]:
        return scheduling.schedules(self._calls, limit, after, name)

    def _pause_schedule(self, name: str, paused: bool) -> bool:
        return scheduling.pause_schedule(self._calls, name, paused)

    def _remove_schedule(self, name: str) -> bool:
        return scheduling.remove_schedule(self._calls, name)

    def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        return scheduling.fire(self._calls, firings)

    def begin(self) -> HandlerTransaction:
        with coded():
            return PostgresTransaction(self._calls, connect(self._calls.url, own=False))

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        calls = self._calls
        with coded(), connect(calls.url) as connection:
            try:
                while not over.is_set():
                    # Sent again after a silence: a connection that is dead without a word fails here.
                    run(connection, f"listen {calls.schema.name}")
                    if not calls.listens:
                        calls.listens = True
                        yield from [Bell(kind, queue) for kind, queue in tuple(calls.asked)]
                    heard = time.monotonic()
                    while not over.is_set() and time.monotonic() - heard < SILENCE:
                        for notify in connection.notifies(timeout=WAIT):
                            heard = time.monotonic()
                            told, _, queue = notify.payload.partition(":")
                            yield from [Bell(kind, queue) for kind in BELL_KINDS if kind == told]
            finally:
                calls.listens = False

    def _close(self) -> None:
        self._connection.close()


class PostgresTransaction(HandlerTransaction):
    """A handler's statements have no deadline."""

    def __init__(self, calls: Calls, connection: Connected) -> None:
        self.connection, self._calls = connection, calls
        run(connection, "begin isolation level read committed, read write")

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        results = all_tagged(item.result for item in items)
        sql, *given = json_of("complete", {"queue": queue, **holds(items), "results": results, "now": self._calls.now})
        with coded():
            answers = outcomes(ask(self.connection, self._calls.schema.sql(sql), given), items)
            run(self.connection, "rollback" if "stale" in answers else "commit")
            return answers
