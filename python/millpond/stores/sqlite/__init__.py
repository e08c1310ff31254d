"""The SQLite store. Each operation is a transaction of its own on one connection; its commit waits for the disk.

Bells: SQLite announces no commits, so a connection of its own looks every 10 ms whether anything changed. That
connection sees the commits of this process like all others, so nothing has to ring for them.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from os.path import exists, realpath
from typing import Any, Final, TypeVar

from millpond.errors import MillpondError
from millpond.jobs import (
    FINAL, Bell, Claimed, Completion, JobError, Listed, NewJob, Outcome, Pushed, Record, Requeued, State, Swept,
    cursor_fields,
)
from millpond.queues import Given, Group, GroupLimits, QueueLimits, QueueStats, Slice
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.given import settle
from millpond.stores.idle import IdleQueues
from millpond.stores.sqlite import endings
from millpond.stores.sqlite.claim import claim
from millpond.stores.sqlite.connection import STATEMENTS, coded, connect, migrate, patient, transaction
from millpond.stores.sqlite.fences import Fences
from millpond.stores.sqlite.guard import FileGuard
from millpond.stores.sqlite.sweep import sweep
from millpond.stores.sqlite.transaction import Transaction, body
from millpond.stores.wire import read, to_json

T = TypeVar("T")

LOOK_EVERY: Final = 0.010
BELLS: Final = ("work", "room", "finished", "cancelled")
# The column by which a state is listed, and where its first page begins.
_ORDERS: Final[Mapping[str, tuple[str, int]]] = {
    "waiting": ("priority", 10), "scheduled": ("due_at", 1 - 2**53), "running": ("lease_until", 1 - 2**53),
}  # fmt: skip
BODIES: Final = {"data": "encoding", "progress": "progress_encoding", "result": "result_encoding"}


_LEFT_OPEN: Final[list[sqlite3.Connection]] = []
"""Until the process ends: see FileGuard.is_shared."""


def clock_of_machine() -> int:
    return time.time_ns() // 1_000_000


class SqliteStore(Store):
    def __init__(self, path: str, clock: Clock = clock_of_machine) -> None:
        if sqlite3.sqlite_version_info < (3, 38):
            raise MillpondError("NotSupported", f"SQLite is {sqlite3.sqlite_version}; 3.38 or newer is needed")
        self._clock, self._lock, self._closed = clock, threading.RLock(), False
        self._idle = IdleQueues()
        with coded():
            # The last connection removes the log. After a crash it is still there.
            was_open = exists(f"{realpath(path)}-wal")
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
        with transaction(self._connection):
            self._fences.open(Transaction(self._connection, self._clock()), is_new, was_open)

    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        with self._writing() as tx:
            settled = settle(_given(tx, queue) or Given(), settings, by, clear)
            if _configure(tx, queue, settled.apply):
                self._fences.accept(tx)
            code, operator = settled.given.texts()
            tx.changes("configure/give", queue=queue, code=code or None, operator=operator or None)
            return settled.overridden

    def settings(self, queue: str) -> Given | None:
        with self._reading() as tx:
            return _given(tx, queue)

    def note_claims(self, queues: Sequence[str]) -> Sequence[bool]:
        with self._writing() as tx:
            return [tx.changes("record/claimed", queue=queue) == 1 for queue in queues]

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        with self._writing() as tx:
            if _configure(tx, queue, {"grouped": True}):
                self._fences.accept(tx)
            tx.changes("limit-group/limit", queue=queue, group=group, limits=to_json(limits))

    def push(self, jobs: Sequence[NewJob], tx: sqlite3.Connection | None = None) -> Sequence[Pushed]:
        if tx is None:
            with self._writing() as own:
                return [_push(own, job) for job in jobs]
        if not isinstance(tx, sqlite3.Connection):
            message = "tx is no connection of the module sqlite3. Two SQLite libraries in one process damage the file"
            raise MillpondError("TransactionMismatch", message)
        with coded():
            within = Transaction(tx, self._clock())
            if not tx.in_transaction or realpath(within.value("savepoint/file")) != self._path:
                raise MillpondError("TransactionMismatch", "tx is no connection to the store's file in a transaction")
            within.changes("savepoint/begin")
            try:
                pushed = [_push(within, job) for job in jobs]
                within.write_counts()
            except BaseException:
                if tx.in_transaction:
                    within.changes("savepoint/undo")
                    within.changes("savepoint/end")
                raise
            within.changes("savepoint/end")
            return pushed

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        return self._lazily(lambda tx: claim(tx, queue, worker, limit, lease, min_priority, per_group, self._fences.floor(tx)))

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        with self._writing() as tx:
            return [endings.end(tx, op, queue, item, lease) for item in items]

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        with self._writing() as tx:
            return [endings.cancel(tx, id) for id in ids]

    def sweep(self, limit: int) -> Swept:
        return self._lazily(lambda tx: sweep(tx, limit, self._idle))

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        with self._reading() as tx:
            return [_record(row) if (row := tx.row("find/find", id=id)) else None for id in ids]

    def ahead(self, id: str) -> int | None:
        with self._reading() as tx:
            ahead: int | None = tx.value("ahead/ahead", id=id)
            return ahead

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        with self._reading() as tx:
            told = tx.rows("stats/histograms", queue=queue, minutes=minutes) if minutes > 0 else []
            slices = [_slice(json.loads(row["slice"])) for row in told]
            return [_stats(json.loads(row["stats"]), slices) for row in tx.rows("stats/queues", queue=queue)]

    def record(self, slices: Sequence[Slice]) -> None:
        with self._writing() as tx:
            for each in slices:
                given = {"queue": each.queue, "priority": each.priority, "metric": each.metric}
                for bucket, count in each.buckets.items():
                    tx.changes("record/record", bucket=bucket, count=count, **given)

    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Listed]:
        column, first = _ORDERS.get(state, ("finished_at", 2**53 - 1))
        key, seq = map(int, cursor_fields(state, after)[:2]) if after else (first, -1)
        with self._reading() as tx:
            known, statement = tx.queue(queue), "list/final" if state in FINAL else f"list/{state}"
            if known and known.grouped and state == "waiting":
                statement = "limits/waiting"
            rows = tx.rows(statement, queue=queue, state=state, limit=limit, key=key, seq=seq)
            return [Listed(**vars(_record(row)), cursor=f"{state}.{row[column]}.{row['seq']}") for row in rows]

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        with self._reading() as tx:
            rows = tx.rows("groups/list", queue=queue, limit=limit, after=after, group=group)
            return [_group(json.loads(row["record"])) for row in rows]

    def requeue_ids(self, ids: Sequence[str]) -> Requeued:
        with self._writing() as tx:
            return Requeued(sum(endings.requeue(tx, tx.rows("requeue/look", id=id)).requeued for id in ids), tx.now)

    def requeue_queue(self, queue: str, limit: int, until: int | None = None) -> Requeued:
        with self._writing() as tx:
            return endings.requeue(tx, tx.rows("requeue/dead", queue=queue, limit=limit, until=until))

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
            outcomes: Any = [endings.end(tx, "complete", queue, item, None) for item in items]
            tx.write_counts()
            self.connection.execute("rollback" if "stale" in outcomes else "commit")
            self._check()
            return outcomes  # type: ignore[no-any-return]


def _close_unless_shared(connection: sqlite3.Connection, is_shared: bool) -> None:
    if is_shared:
        _LEFT_OPEN.append(connection)
    else:
        connection.close()


def _given(tx: Transaction, queue: str) -> Given | None:
    row = tx.row("configure/given", queue=queue)
    return Given.from_texts(row["code"], row["operator"]) if row else None


def _configure(tx: Transaction, queue: str, settings: Mapping[str, Any]) -> bool:
    """Whether it has made triggers, which changes the schema."""
    before = tx.queue(queue)
    tx.changes("configure/configure", queue=queue, settings=to_json(settings))
    tx.reread()
    known = tx.made_queue(queue)
    becomes_grouped = known.grouped and not (before and before.grouped)
    if becomes_grouped:
        for name in ("count", "count_pushed", "count_left", "count_removed", "adopt_groups", "adopt"):
            tx.changes(f"limits/{name}", queue=queue)
        tx.line_up(queue)
    if known.grouped and (before is None or known.row["limits"] != before.row["limits"]):
        tx.changes("limits/touch", queue=queue)
    return becomes_grouped


def _push(tx: Transaction, job: NewJob) -> Pushed:
    queue = tx.made_queue(job.queue)
    due_at = max(tx.now, tx.now + (job.delay or 0) if job.run_at is None else job.run_at)
    state: State = "waiting" if due_at <= tx.now else "scheduled"
    given = vars(job) | {
        "due_at": due_at, "state": state, "encoding": job.data.encoding, "data": job.data.body,
        "line": None,
        **{name: getattr(job, name) or queue.row[name] for name in ("attempts", "timeout")},
    }  # fmt: skip
    if queue.room > 0 and queue.grouped and state == "waiting":
        tx.changes("push/touch", **given)
        given["line"] = tx.value("push/line", **given)
    if queue.room > 0 and tx.changes("push/insert", **given):
        tx.move(job.queue, None, state, due_in=due_at - tx.now)
        return Pushed("pushed", job.id)
    # A repeated push is not refused.
    existing = tx.value("push/existing", **given)
    return Pushed("existing", existing) if existing else Pushed("full", job.id)


def _stats(told: dict[str, Any], slices: list[Slice]) -> QueueStats:
    limits = told["limits"] and read(QueueLimits, told["limits"])
    return read(QueueStats, told | {"limits": limits}, histograms=[each for each in slices if each.queue == told["queue"]])


def _slice(told: dict[str, Any]) -> Slice:
    return read(Slice, told, buckets={int(bucket): count for bucket, count in told["buckets"].items()})


def _group(told: dict[str, Any]) -> Group:
    return read(Group, told | {"limits": told["limits"] and read(GroupLimits, told["limits"])})


def _record(row: sqlite3.Row) -> Record:
    bodies = {name: body(row, encoding, name) for name, encoding in BODIES.items()}
    return read(Record, dict(row), **bodies, error=None if row["error"] is None else JobError.from_json(row["error"]))
