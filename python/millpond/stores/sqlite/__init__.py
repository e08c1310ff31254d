"""The SQLite store. Each operation is a transaction of its own on one connection; its commit waits for the disk.

Bells: SQLite announces no commits, so a connection of its own looks every 10 ms whether anything changed. That
connection sees the commits of this process like all others, so nothing has to ring for them.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from os.path import exists, getsize, realpath
from typing import Any, Final, TypeVar

from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, BulkChange, BulkStep, Claimed, Completion, JobFilter, JobOutcome, JobUpdate, NewJob, Outcome, Page, Pushed, Record, Relatives, Removed,
    Requeued, RestoreOutcome, State, Swept, UpdateOutcome,
)
from millpond.queues import Group, GroupLimits, QueueStats, SettingsReport, Slice, WorkerBeat, WorkerRecord
from millpond.schedules import Declaration, DeclareOutcome, Fired, Firing, ScheduleRecord
from millpond.steps import EntriesFrom, EntriesPage, Signal, Signalled
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.sqlite import configure as configuring
from millpond.stores.sqlite import find as looking
from millpond.stores.sqlite import list as listing
from millpond.stores.sqlite import schedules as scheduling
from millpond.stores.sqlite import workers as registry
from millpond.stores.sqlite.bulk import bulk
from millpond.stores.sqlite.cancel import cancel
from millpond.stores.sqlite.claim import claim
from millpond.stores.sqlite.connection import STATEMENTS, coded, connect, migrate, patient, transaction
from millpond.stores.sqlite.end import end
from millpond.stores.sqlite.fences import Fences
from millpond.stores.sqlite.graphs import relatives
from millpond.stores.sqlite.guard import FileGuard
from millpond.stores.sqlite.journal import entries, signal
from millpond.stores.sqlite.push import push
from millpond.stores.sqlite.remove import remove
from millpond.stores.sqlite.requeue import requeue
from millpond.stores.sqlite.restore import restore
from millpond.stores.sqlite.stats import record, stats
from millpond.stores.sqlite.sweep import sweep
from millpond.stores.sqlite.transaction import Transaction, savepoint
from millpond.stores.sqlite.update import update
from millpond.stores.wire import to_json

T = TypeVar("T")

LOOK_EVERY: Final = 0.010
BELLS: Final = ("work", "room", "finished", "cancelled")

_LEFT_OPEN: Final[list[sqlite3.Connection]] = []
"""Until the process ends: see FileGuard.is_shared."""


def clock_of_machine() -> int:
    return time.time_ns() // 1_000_000


class SqliteStore(Store):
    def __init__(self, path: str, clock: Clock = clock_of_machine) -> None:
        if sqlite3.sqlite_version_info < (3, 38):
            raise MillpondError("NotSupported", f"SQLite is {sqlite3.sqlite_version}; 3.38 or newer is needed")
        self._clock, self._lock, self._closed = clock, threading.RLock(), False
        with coded():
            # The last connection removes the log. After a crash it is still there. An empty one may be that of a client which is just
            # opening the file, and has not raised the floor of fences yet.
            log = f"{realpath(path)}-wal"
            was_open = exists(log) and getsize(log) > 0
            self._connection = connect(path)
            try:
                self._open(path, was_open)
            except BaseException as error:
                _close_unless_shared(self._connection, getattr(error, "code", None) == "SecondLibrary")
                raise

    def _open(self, path: str, was_open: bool) -> None:
        # The first read opens the log. Another process may be repairing it after a crash.
        patient(lambda: self._connection.execute("select count(*) from sqlite_master").fetchone())
        self._path = realpath(path)
        self._guard, self._fences = FileGuard(path), Fences(self._path)
        is_new = migrate(self._connection)
        patient(lambda: self._connection.execute(STATEMENTS["claim/picks"]))
        patient(lambda: self._fences.look(Transaction(self._connection, self._clock())))
        with transaction(self._connection):
            self._fences.open(Transaction(self._connection, self._clock()), is_new, was_open)

    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        with self._writing() as tx:
            overridden, changes_schema = configuring.configure(tx, queue, settings, by, clear)
            if changes_schema:
                self._fences.accept(tx)
            return overridden

    def settings(self, queue: str) -> SettingsReport | None:
        with self._reading() as tx:
            return configuring.settings(tx, queue)

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        with self._writing() as tx:
            _, changes_schema = configuring.configure(tx, queue, {"grouped": True}, "code", ())
            if changes_schema:
                self._fences.accept(tx)
            tx.changes("limit-group/limit", queue=queue, group=group, limits=to_json(limits))

    def push(self, jobs: Sequence[NewJob], tx: sqlite3.Connection | None = None, whole: bool = False) -> Sequence[Pushed]:
        if tx is None:
            with self._writing() as own:
                return push(own, jobs, whole)
        if not isinstance(tx, sqlite3.Connection):
            message = "tx is no connection of the module sqlite3. Two SQLite libraries in one process damage the file"
            raise MillpondError("TransactionMismatch", message)
        with coded():
            within = Transaction(tx, self._clock())
            if not tx.in_transaction or realpath(within.value("savepoint/file")) != self._path:
                raise MillpondError("TransactionMismatch", "tx is no connection to the store's file in a transaction")
            with savepoint(within):
                return push(within, jobs, whole)

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        return self._lazily(lambda tx: claim(tx, queue, worker, limit, lease, min_priority, per_group, self._fences.floor(tx)))

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        with self._writing() as tx:
            return end(tx, op, queue, items, lease)

    def entries(self, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
        with self._reading() as tx:
            return entries(tx, items)

    def signal(self, items: Sequence[Signal]) -> Sequence[Signalled]:
        with self._writing() as tx:
            return [signal(tx, item) for item in items]

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        with self._writing() as tx:
            return cancel(tx, ids)

    def update(self, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
        with self._writing() as tx:
            return [update(tx, item) for item in items]

    def requeue(
        self, *, ids: Sequence[str] | None = None, queue: str = "", limit: int = 1000, until: int | None = None,
        forget: int | None = None,
    ) -> Requeued:  # fmt: skip
        with self._writing() as tx:
            return requeue(tx, ids, queue, limit, until, forget)

    def remove(
        self, *, ids: Sequence[str] | None = None, queue: str = "", state: State | None = None, limit: int = 1000
    ) -> Removed:
        with self._writing() as tx:
            return remove(tx, ids, queue, state, limit)

    def bulk(
        self, queue: str, state: State, change: BulkChange, limit: int, after: str | None = None, filter: JobFilter | None = None,
        until: int | None = None,
    ) -> BulkStep:  # fmt: skip
        with self._writing() as tx:
            return bulk(tx, queue, state, change, limit, after, filter, until)

    def restore(self, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
        with self._writing() as tx:
            return restore(tx, records)

    def sweep(self, limit: int) -> Swept:
        return self._lazily(lambda tx: sweep(tx, limit))

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        with self._reading() as tx:
            return looking.find(tx, ids)

    def outcomes(self, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
        with self._reading() as tx:
            return looking.outcomes(tx, ids)

    def ahead(self, id: str) -> int | None:
        with self._reading() as tx:
            return looking.ahead(tx, id)

    def relatives(self, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
        with self._reading() as tx:
            return relatives(tx, ids, limit)

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        with self._reading() as tx:
            return stats(tx, queue, minutes)

    def record(self, slices: Sequence[Slice]) -> None:
        with self._writing() as tx:
            record(tx, slices)

    def list(
        self, queue: str, state: State, limit: int, after: str | None = None, filter: JobFilter | None = None
    ) -> Page:
        with self._reading() as tx:
            return listing.jobs_in(tx, queue, state, limit, after, filter)

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        with self._reading() as tx:
            return listing.groups(tx, queue, limit, after, group)

    def heartbeat(self, workers: Sequence[WorkerBeat], gone: Sequence[str] = ()) -> Sequence[bool]:
        with self._writing() as tx:
            return registry.heartbeat(tx, workers, gone)

    def workers(self, queue: str | None = None) -> Sequence[WorkerRecord]:
        with self._reading() as tx:
            return registry.workers(tx, queue)

    def declare(self, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
        with self._writing() as tx:
            return [scheduling.declare(tx, each) for each in schedules]

    def schedules(self, limit: int, after: str | None = None, name: str | None = None) -> Sequence[ScheduleRecord]:
        with self._reading() as tx:
            return scheduling.schedules(tx, limit, after, name)

    def _pause_schedule(self, name: str, paused: bool) -> bool:
        with self._writing() as tx:
            return scheduling.pause_schedule(tx, name, paused)

    def _remove_schedule(self, name: str) -> bool:
        with self._writing() as tx:
            return scheduling.remove_schedule(tx, name)

    def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        with self._writing() as tx:
            return [scheduling.fire(tx, each) for each in firings]

    def begin(self) -> HandlerTransaction:
        with coded():
            self._check_open()
            # Before: where the file is gone, the connection would make another.
            self._guard.check()
            return SqliteTransaction(connect(self._path), self._clock, self._guard.check)

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        version, connection = None, connect(self._path)
        try:
            connection.execute(STATEMENTS["bells/seen"])
            while not over.wait(LOOK_EVERY):
                try:
                    at = connection.execute("pragma data_version").fetchone()[0]
                    if at != version:
                        for row in Transaction(connection, 0).rows("bells/look", queues=None):
                            yield from [Bell(kind, row["name"]) for kind in BELLS if row[kind]]
                        for row in Transaction(connection, 0).rows("bells/gone"):
                            yield from [Bell(kind, row["name"]) for kind in BELLS if kind != "work"]
                        version = at
                except sqlite3.OperationalError:
                    continue  # locked for a moment: look again
        finally:
            connection.close()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            _close_unless_shared(self._connection, self._guard.is_shared)

    @contextmanager
    def _writing(self, begin: str = "begin immediate") -> Iterator[Transaction]:
        with self._lock, coded():
            self._check_open()
            self._guard.check()
            with transaction(self._connection, begin):
                tx = Transaction(self._connection, self._clock())
                yield tx
                tx.write_counts()
            # On the disk, but perhaps in a file that nobody finds again.
            self._guard.check()

    def _reading(self) -> AbstractContextManager[Transaction]:
        """One view of the data for all that is read."""
        return self._writing("begin")

    def _lazily(self, work: Callable[[Transaction], T]) -> T:
        """Takes the lock at the first write. If it cannot be had then, the work begins anew with the lock."""
        try:
            with self._reading() as tx:
                return work(tx)
        except MillpondError as error:
            if error.code != "StoreBusy":
                raise
        with self._writing() as tx:
            return work(tx)

    def _check_open(self) -> None:
        if self._closed:
            raise MillpondError("Closed", "the store is closed")


class SqliteTransaction(HandlerTransaction):
    """Holds the file's lock for writing until it ends."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, check: Callable[[], None]) -> None:
        """`check` is that of the store's FileGuard."""
        self.connection, self._clock, self._check = connection, clock, check
        try:
            patient(lambda: connection.execute("begin immediate"))
        except BaseException:
            connection.close()
            raise

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        with coded():
            tx = Transaction(self.connection, self._clock())
            outcomes: Any = end(tx, "complete", queue, items, None)
            tx.write_counts()
            self.connection.execute("rollback" if "stale" in outcomes else "commit")
            self._check()
            return outcomes  # type: ignore[no-any-return]


def _close_unless_shared(connection: sqlite3.Connection, is_shared: bool) -> None:
    if is_shared:
        _LEFT_OPEN.append(connection)
    else:
        connection.close()
