"""The SQLite store. Each operation is a transaction of its own on one connection; its commit waits for the disk.

Bells: SQLite announces no commits, so a connection of its own looks every 10 ms whether anything changed. That
connection sees the commits of this process like all others, so nothing has to ring for them.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os.path import realpath
from typing import Any, Final

from millpond.encoding import SAFE
from millpond.errors import MillpondError
from millpond.jobs import (
    FINAL, STATES, Bell, Claimed, Completion, JobError, NewJob, Outcome, Pushed, Record, State, Swept,
)
from millpond.queues import Group, GroupLimits, QueueLimits, QueueStats, Slice
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.idle import IdleQueues
from millpond.stores.sqlite import endings
from millpond.stores.sqlite.claim import claim, look
from millpond.stores.sqlite.connection import STATEMENTS, coded, connect, fence_floor, migrate, patient, writing
from millpond.stores.sqlite.sweep import sweep
from millpond.stores.sqlite.transaction import Queue, Transaction, body
from millpond.stores.wire import read, to_json

LOOK_EVERY: Final = 0.010
FIRST_PAGE: Final = {"seq": -SAFE, "due_at": -SAFE, "lease_until": -SAFE, "priority": SAFE, "finished_at": SAFE}
SETTINGS: Final = ("capacity", "keep_done", "keep_dead", "paused", "attempts", "timeout", "lease", "grouped")
LIMITS: Final = {"most": "running", "rate": "rate", "group_most": "group_running", "group_rate": "group_rate"}
"""Parameters of configure/configure, and the settings that they are."""

BODIES: Final = {"data": "encoding", "progress": "progress_encoding", "result": "result_encoding"}


def clock_of_machine() -> int:
    return time.time_ns() // 1_000_000


class SqliteStore(Store):
    def __init__(self, path: str, clock: Clock = clock_of_machine) -> None:
        if sqlite3.sqlite_version_info < (3, 38):
            raise MillpondError("NotSupported", f"SQLite is {sqlite3.sqlite_version}; 3.38 or newer is needed")
        self._clock, self._lock, self._closed = clock, threading.RLock(), False
        self._idle = IdleQueues()
        with coded():
            self._connection = connect(path)
            migrate(self._connection)
            self._connection.execute(STATEMENTS["limits/picks"])
            self._floor = fence_floor(self._connection)
        self._path = realpath(path)

    def _configure(self, queue: str, settings: Mapping[str, Any]) -> None:
        with self._writing() as tx:
            _configure(tx, queue, settings)

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        with self._writing() as tx:
            _configure(tx, queue, {"grouped": True})
            weight, given = limits.weight if limits else 1, to_json(limits)
            tx.changes("limit-group/limit", queue=queue, group=group, weight=weight, limits=given)

    def push(self, jobs: Sequence[NewJob], tx: sqlite3.Connection | None = None) -> Sequence[Pushed]:
        if tx is None:
            with self._writing() as own:
                return [_push(own, job) for job in jobs]
        with coded():
            within = Transaction(tx, self._clock())
            files = within.cursor.execute("select file from pragma_database_list where name = 'main'").fetchall()
            if not tx.in_transaction or realpath(files[0]["file"]) != self._path:
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
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0
    ) -> Claimed:
        with self._reading() as tx:
            nothing = look(tx, queue, lease, min_priority)
        if nothing:
            return nothing
        with self._writing() as tx:
            return claim(tx, queue, worker, limit, lease, min_priority, self._floor)

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        with self._writing() as tx:
            return [endings.end(tx, op, queue, item, lease) for item in items]

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        with self._writing() as tx:
            return [endings.cancel(tx, id) for id in ids]

    def sweep(self, limit: int) -> Swept:
        with self._reading() as tx:
            swept = sweep(tx, limit, self._idle, writes=False)
        if swept is None:
            with self._writing() as tx:
                swept = sweep(tx, limit, self._idle, writes=True)
        assert swept
        return swept

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        with self._reading() as tx:
            return [_record(row) if (row := tx.row("find/find", id=id)) else None for id in ids]

    def ahead(self, id: str) -> int | None:
        with self._reading() as tx:
            ahead: int | None = tx.value("ahead/ahead", id=id)
            return ahead

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        with self._reading() as tx:
            slices: dict[str, dict[tuple[Any, ...], Slice]] = defaultdict(dict)
            if minutes > 0:
                for row in tx.rows("stats/histograms", queue=queue, minute=tx.now // 60_000 - minutes + 1):
                    key = (row["queue"], row["priority"], row["metric"])
                    slices[key[0]].setdefault(key, Slice(*key, {})).buckets[row["bucket"]] = row["count"]
            rows = tx.rows("stats/queues", queue=queue)
            return [_stats(tx, row, list(slices[row["name"]].values())) for row in rows]

    def record(self, slices: Sequence[Slice]) -> None:
        with self._writing() as tx:
            for each in slices:
                given = {"queue": each.queue, "priority": each.priority, "metric": each.metric}
                for bucket, count in each.buckets.items():
                    tx.changes("record/record", minute=tx.now // 60_000, bucket=bucket, count=count, **given)

    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Record]:
        with self._reading() as tx:
            place: Any = FIRST_PAGE
            if after and (place := tx.row("list/cursor", id=after, queue=queue, state=state)) is None:
                return []
            known, statement = tx.queue(queue), "list/final" if state in FINAL else f"list/{state}"
            if known and known.grouped and state == "waiting":
                statement = "limits/waiting"
            rows = tx.rows(statement, queue=queue, state=state, limit=limit, **dict(place))
            return [_record(row) for row in rows]

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        with self._reading() as tx:
            rows = tx.rows("groups/list", queue=queue, limit=limit, after=after, group=group)
            return [
                Group(
                    group=row["name"], limits=row["limits"] and read(GroupLimits, json.loads(row["limits"])),
                    waiting=row["waiting"], running=row["running"], next_start=_until(tx, row["start_at"]),
                )
                for row in rows
            ]  # fmt: skip

    def requeue_ids(self, ids: Sequence[str]) -> int:
        with self._writing() as tx:
            return sum(endings.requeue(tx, tx.rows("requeue/look", id=id)) for id in ids)

    def requeue_queue(self, queue: str, limit: int) -> int:
        with self._writing() as tx:
            return endings.requeue(tx, tx.rows("requeue/dead", queue=queue, limit=limit))

    def begin(self) -> HandlerTransaction:
        with coded():
            return SqliteTransaction(connect(self._path), self._clock)

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        seen: dict[str, sqlite3.Row] = {}
        version, connection = None, connect(self._path)
        try:
            while not over.wait(LOOK_EVERY):
                try:
                    at = connection.execute("pragma data_version").fetchone()[0]
                    if at != version:
                        rows = Transaction(connection, 0).rows("counts/watch")
                        for row in rows:
                            yield from [Bell(kind, row["name"]) for kind in _differences(seen.get(row["name"]), row)]
                        version, seen = at, {row["name"]: row for row in rows}
                except sqlite3.OperationalError:
                    continue  # locked for a moment: look again
        finally:
            connection.close()

    def _close(self) -> None:
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
    def _reading(self) -> Iterator[Transaction]:
        """One view of the data for all that is read."""
        with self._lock, coded():
            self._check_open()
            patient(lambda: self._connection.execute("begin"))
            try:
                yield Transaction(self._connection, self._clock())
            finally:
                self._connection.execute("commit")

    def _check_open(self) -> None:
        if self._closed:
            raise MillpondError("Closed", "the store is closed")


class SqliteTransaction(HandlerTransaction):
    """Holds the file's lock for writing until it ends."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self.connection, self._clock = connection, clock
        patient(lambda: connection.execute("begin immediate"))

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        with coded():
            tx = Transaction(self.connection, self._clock())
            outcomes: Any = [endings.end(tx, "complete", queue, item, None) for item in items]
            tx.write_counts()
            self.connection.execute("rollback" if "stale" in outcomes else "commit")
            return outcomes  # type: ignore[no-any-return]


def _configure(tx: Transaction, queue: str, settings: Mapping[str, Any]) -> None:
    known, backoff = tx.queue(queue), settings.get("backoff")
    rates = {name: to_json(settings[name]) for name in ("rate", "group_rate") if settings.get(name)}
    given = {name: settings.get(name) for name in SETTINGS} | {name: settings.get(of) for name, of in LIMITS.items()}
    given |= rates | {f"set_{name}": int(LIMITS.get(name, name) in settings) for name in ("capacity", "timeout", *LIMITS)}
    given |= {f"backoff_{name}": getattr(backoff, name, None) for name in ("base", "factor", "max", "jitter")}
    given["grouped"] = int(any(settings.get(name) for name in ("grouped", "group_running", "group_rate")))
    tx.changes("configure/configure", queue=queue, **given)
    tx.reread()
    if not tx.made_queue(queue).grouped:
        return
    grouped_before = known is not None and known.grouped
    limits = settings.keys() & {"grouped", *LIMITS.values()}
    if not grouped_before:
        for name in ("count", "count_pushed", "count_left", "count_removed", "adopt_groups", "adopt"):
            tx.changes(f"limits/{name}", queue=queue)
        tx.line_up(queue)
    if grouped_before and limits:
        tx.changes("limits/touch", queue=queue)


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
        tx.move(job.queue, None, state)
        return Pushed("pushed", job.id)
    # A repeated push is not refused.
    existing = tx.value("push/existing", **given)
    return Pushed("existing", existing) if existing else Pushed("full", job.id)


def _until(tx: Transaction, time: int | None) -> int | None:
    return None if time is None else max(0, time - tx.now)


def _stats(tx: Transaction, row: sqlite3.Row, slices: list[Slice]) -> QueueStats:
    queue = Queue(row["name"], row)
    limits = read(QueueLimits, queue.limits) if any(queue.limits.values()) else None
    blocked = tx.row("stats/blocked", queue=queue.name) if queue.grouped else None
    at_limit, held = blocked or (0, 0)
    due_at = tx.value("stats/oldest", queue=queue.name) if row["waiting"] > 0 else None
    return QueueStats(
        queue=queue.name, capacity=row["capacity"], paused=row["paused"] == 1, limits=limits, histograms=slices,
        counts={state: row[state] for state in STATES}, oldest_waiting=None if due_at is None else max(0, tx.now - due_at),
        next_start=_until(tx, queue.start_at(1)), groups_at_limit=at_limit, groups_held=held,
    )  # fmt: skip


def _record(row: sqlite3.Row) -> Record:
    bodies = {name: body(row, encoding, name) for name, encoding in BODIES.items()}
    return read(Record, dict(row), **bodies, error=None if row["error"] is None else JobError.from_json(row["error"]))


def _differences(was: Mapping[str, Any] | sqlite3.Row | None, now: sqlite3.Row) -> Iterator[Any]:
    before: dict[str, Any] = dict(was) if was else dict.fromkeys(now.keys(), 0) | {"capacity": None}
    changed = {name for name in now.keys() if now[name] != before[name]}
    freed = now["has_limits"] and ("finished_total" in changed or now["running"] < before["running"])
    resumed = before["paused"] and not now["paused"]
    if now["waiting"] and (changed & {"ready_total", "limits_total"} or resumed or freed):
        yield "work"
    if "finished_total" in changed:
        yield "finished"
    if "cancelled_total" in changed:
        yield "cancelled"
    capacity, held = now["capacity"], now["waiting"] + now["scheduled"]
    moved = changed & {"capacity", "ready_total"} or held != before["waiting"] + before["scheduled"]
    bounded = capacity is not None or before["capacity"] is not None
    if bounded and moved and (capacity is None or held < capacity):
        yield "room"
