"""The SQLite store. Each operation is a transaction of its own on one connection; its commit waits for the disk."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os.path import realpath
from typing import Any, Unpack

from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, Claimed, Completion, ExtendOutcome, Extension, Failure, FailOutcome, Held, NewJob, Outcome, Pushed,
    QueueStats, Record, Settings, Slice, State, Swept, check_settings,
)
from millpond.store import Clock, HandlerTransaction
from millpond.stores.bells import ListeningStore
from millpond.stores.idle import IdleQueues
from millpond.stores.sqlite import claim, endings, people
from millpond.stores.sqlite import sweep as sweeping
from millpond.stores.sqlite.bells import Bells
from millpond.stores.sqlite.connection import coded, connect, fence_floor, migrate, patient, writing
from millpond.stores.sqlite.push import push
from millpond.stores.sqlite.transaction import Reader, Transaction


def clock_of_machine() -> int:
    return time.time_ns() // 1_000_000


class SqliteStore(ListeningStore[Bells]):
    def __init__(self, path: str, clock: Clock = clock_of_machine) -> None:
        if sqlite3.sqlite_version_info < (3, 38):
            raise MillpondError("NotSupported", f"SQLite is {sqlite3.sqlite_version}; 3.38 or newer is needed")
        self._path, self._clock = path, clock
        self._lock = threading.RLock()
        self._idle = IdleQueues()
        self._closed = False
        with coded():
            self._connection = connect(path)
            migrate(self._connection)
            self._floor = fence_floor(self._connection)
        self._path = realpath(path)

    def configure(self, queue: str, **settings: Unpack[Settings]) -> None:
        check_settings(queue, settings)
        if not settings:
            return
        given: dict[str, Any] = dict(settings)
        backoff = given.pop("backoff", None)
        names = ("capacity", "keep_done", "keep_dead", "paused", "attempts", "timeout", "lease")
        with self._writing() as tx:
            tx.changes(
                "configure/configure",
                queue=queue,
                set_capacity=int("capacity" in given),
                set_timeout=int("timeout" in given),
                **{name: given.get(name) for name in names},
                **{name: None for name in ("most", "rate", "group_most", "group_rate")},
                **{name: 0 for name in ("set_most", "set_rate", "set_group_most", "set_group_rate", "grouped")},
                **{f"backoff_{name}": getattr(backoff, name, None) for name in ("base", "factor", "max", "jitter")},
            )

    def push(self, jobs: Sequence[NewJob], tx: sqlite3.Connection | None = None) -> Sequence[Pushed]:
        if tx is None:
            with self._writing() as own:
                return push(own, jobs)
        with coded():
            return self._push_within(tx, jobs)

    def _push_within(self, connection: sqlite3.Connection, jobs: Sequence[NewJob]) -> Sequence[Pushed]:
        reader = Transaction(connection, self._clock())
        files = reader.cursor.execute("select file from pragma_database_list where name = 'main'").fetchall()
        if not connection.in_transaction or realpath(files[0]["file"]) != self._path:
            raise MillpondError("TransactionMismatch", "tx is no connection to the store's file in a transaction")
        reader.changes("savepoint/begin")
        try:
            pushed = push(reader, jobs)
            reader.write_counts()
        except BaseException:
            if connection.in_transaction:
                reader.changes("savepoint/undo")
                reader.changes("savepoint/end")
            raise
        reader.changes("savepoint/end")
        return pushed

    def claim(self, queue: str, worker: str, limit: int, lease: int | None = None) -> Claimed:
        with self._reading() as reader:
            nothing = claim.look(reader, queue, lease)
        if nothing:
            return nothing
        with self._writing() as tx:
            return claim.claim(tx, queue, worker, limit, lease, self._floor)

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        with self._writing() as tx:
            return [endings.complete(tx, queue, item) for item in items]

    def fail(self, queue: str, items: Sequence[Failure]) -> Sequence[FailOutcome]:
        with self._writing() as tx:
            return [endings.fail(tx, queue, item) for item in items]

    def release(self, queue: str, items: Sequence[Held]) -> Sequence[Outcome]:
        with self._writing() as tx:
            return [endings.release(tx, queue, item) for item in items]

    def extend(self, queue: str, items: Sequence[Extension], lease: int | None = None) -> Sequence[ExtendOutcome]:
        with self._writing() as tx:
            return [endings.extend(tx, queue, item, lease) for item in items]

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        with self._writing() as tx:
            return [endings.cancel(tx, id) for id in ids]

    def sweep(self, limit: int) -> Swept:
        with self._reading() as reader:
            nothing = sweeping.look(reader, self._idle)
        if nothing:
            return nothing
        with self._writing() as tx:
            return sweeping.sweep(tx, limit, self._idle)

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        with self._reading() as reader:
            return [people.find(reader, id) for id in ids]

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        with self._reading() as reader:
            return people.stats(reader, queue, minutes)

    def record(self, slices: Sequence[Slice]) -> None:
        with self._writing() as tx:
            for each in slices:
                given = {"queue": each.queue, "priority": each.priority, "metric": each.metric}
                for bucket, count in each.buckets.items():
                    tx.changes("record/record", minute=tx.now // 60_000, bucket=bucket, count=count, **given)

    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Record]:
        with self._reading() as reader:
            return people.list_jobs(reader, queue, state, limit, after)

    def requeue_ids(self, ids: Sequence[str]) -> int:
        with self._writing() as tx:
            return people.requeue_ids(tx, ids)

    def requeue_queue(self, queue: str, limit: int) -> int:
        with self._writing() as tx:
            return people.requeue_queue(tx, queue, limit)

    def _make_bells(self, ring: Callable[[Bell], None]) -> Bells:
        return Bells(self._path, ring)

    def begin(self) -> HandlerTransaction:
        with coded():
            connection = connect(self._path)
            patient(lambda: connection.execute("begin immediate"))
        return SqliteTransaction(connection, self._clock)

    def close(self) -> None:
        self._stop_listening()
        with self._lock:
            self._closed = True
            self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._lock, coded():
            self._check_open()
            with writing(self._connection):
                tx = Transaction(self._connection, self._clock())
                yield tx
                tx.write_counts()

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        """One view of the data for all that is read."""
        with self._lock, coded():
            self._check_open()
            patient(lambda: self._connection.execute("begin"))
            try:
                yield Reader(self._connection, self._clock())
            finally:
                self._connection.execute("commit")

    def _check_open(self) -> None:
        if self._closed:
            raise MillpondError("Closed", "the store is closed")


class SqliteTransaction(HandlerTransaction):
    """Holds the file's lock for writing until it ends."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self.connection: sqlite3.Connection = connection
        self._clock = clock

    def complete(self, queue: str, item: Completion) -> Outcome:
        with coded():
            tx = Transaction(self.connection, self._clock())
            outcome = endings.complete(tx, queue, item)
            tx.write_counts()
            self.connection.execute("commit" if outcome == "ok" else "rollback")
            return outcome

    def close(self) -> None:
        # What is not committed is rolled back.
        self.connection.close()
