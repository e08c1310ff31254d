"""The PostgreSQL store. Each operation is one call of a function of the contract, in a transaction of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Unpack

import psycopg
from psycopg.pq import TransactionStatus

from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, Claimed, Completion, ExtendOutcome, Extension, Failure, FailOutcome, Held, Lost, NewJob, Outcome, Pushed,
    QueueStats, Record, Settings, Slice, State, Swept, check_settings,
)
from millpond.store import Clock, HandlerTransaction
from millpond.stores.bells import ListeningStore
from millpond.stores.idle import QUEUES_PER_SWEEP, IdleQueues
from millpond.stores.postgres import wire
from millpond.stores.postgres.bells import Bells
from millpond.stores.postgres.connection import Connected, Connection, LostAnswer, Rows, coded, connect, run
from millpond.stores.postgres.install import Schema

PUSH_AGAIN_FOR: Final = 10.0
LOOK_FOR_IDLE_EVERY: Final = 60_000
_SETTINGS: Final = ("keep_done", "keep_dead", "paused", "attempts", "lease")
_PUSH: Final = "select millpond.push_jobs(%s::json, %s, %s::bigint, %s, %s)"


class PostgresStore(ListeningStore[Bells]):
    def __init__(self, url: str, schema: str = "millpond", clock: Clock | None = None) -> None:
        self._url, self._schema, self._clock = url, Schema(schema), clock
        self._connection = Connection(url)
        self._idle, self._looked_for_idle = IdleQueues(), 0
        self._connection.use(self._opened)

    def _opened(self, connection: Connected) -> None:
        self._install = self._schema.open(connection)

    def configure(self, queue: str, **settings: Unpack[Settings]) -> None:
        check_settings(queue, settings)
        backoff = settings.get("backoff")
        given: dict[str, Any] = {name: settings.get(name) for name in _SETTINGS}
        for name in ("capacity", "timeout"):
            given |= {name: settings.get(name), f"set_{name}": name in settings}
        for name in ("base", "factor", "max", "jitter"):
            given[f"backoff_{name}"] = getattr(backoff, name, None)
        named = ", ".join(f"{name} => %s" for name in given)
        self._call(f"select millpond.configure(%s, {named})", queue, *given.values())

    def push(self, jobs: Sequence[NewJob], tx: psycopg.Connection[Any] | None = None) -> Sequence[Pushed]:
        return self._push(jobs) if tx is None else self._push_within(tx, jobs)

    def _push(self, jobs: Sequence[NewJob]) -> list[Pushed]:
        end, again = time.monotonic() + PUSH_AGAIN_FOR, False
        while True:
            try:
                return self._pushed(jobs, self._call(_PUSH, *self._push_parameters(jobs, True, again)), again)
            except LostAnswer:
                # Nobody knows whether the jobs are stored. Whatever comes now, only an answer tells.
                again = True
                if time.monotonic() > end:
                    raise
            except MillpondError:
                if not again or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def _push_within(self, tx: psycopg.Connection[Any], jobs: Sequence[NewJob]) -> list[Pushed]:
        # This look cannot fail on the server, which would abort the caller's transaction.
        if tx.info.transaction_status != TransactionStatus.INTRANS:
            raise MillpondError("TransactionMismatch", "tx is not a psycopg connection with an open transaction")
        for queue in {job.queue for job in jobs}:
            # Others would wait for a queue that the caller's transaction makes.
            self._call("select millpond.make_queue(%s)", queue)
        with coded(), tx.transaction():
            try:
                install = run(tx, self._schema.sql("select millpond.installed() ->> 'install'"))[0][0]
            except psycopg.errors.DatabaseError:
                install = None
            if install != self._install:
                raise MillpondError("TransactionMismatch", "tx is on another database than the store")
            rows = run(tx, self._schema.sql(_PUSH), self._push_parameters(jobs, False, False))
        return self._pushed(jobs, rows, False)

    def _push_parameters(self, jobs: Sequence[NewJob], own: bool, again: bool) -> list[object]:
        known_before = again and any(job.fresh for job in jobs)
        listener = self._listener() if own else None
        return [json.dumps([wire.job_json(job, again) for job in jobs]), own, self._now(), known_before, listener]

    def _pushed(self, jobs: Sequence[NewJob], rows: Rows, again: bool) -> list[Pushed]:
        found = []
        for job, answer in zip(jobs, rows[0][0], strict=True):
            status, id = answer.split(" ")
            if status == "full":
                self._asked("room", job.queue)
            # The lost call stored it.
            found.append(Pushed("pushed" if again and status == "existing" and id == job.id else status, id))
        return found

    def claim(self, queue: str, worker: str, limit: int, lease: int | None = None) -> Claimed:
        self._asked("work", queue)
        self._asked("cancelled", queue)
        for _ in range(2):
            at, holds, jobs, retry_after, asleep, *_ = self._call(
                "select * from millpond.claim(%s, %s, %s, %s::bigint, %s, %s::bigint)",
                queue, worker, limit, lease, self._listener(), self._now(),
            )[0]  # fmt: skip
            # A push that runs at this moment may not notify this process.
            if not asleep:
                break
        return Claimed(at, holds, retry_after, wire.claimed_jobs(jobs))

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        rows = self._call(_COMPLETE, *_completion(queue, items, self._now()))
        return wire.outcomes(rows[0][0], len(items))

    def fail(self, queue: str, items: Sequence[Failure]) -> Sequence[FailOutcome]:
        failures = json.dumps([wire.failure_json(item) for item in items])
        outcomes: list[FailOutcome] = self._call(
            "select millpond.fail(%s, %s::json, %s::bigint)", queue, failures, self._now()
        )[0][0]
        return outcomes

    def release(self, queue: str, items: Sequence[Held]) -> Sequence[Outcome]:
        rows = self._call("select millpond.release(%s, %s::uuid[], %s::integer[])", queue, *wire.holds(items))
        return wire.outcomes(rows[0][0], len(items))

    def extend(self, queue: str, items: Sequence[Extension], lease: int | None = None) -> Sequence[ExtendOutcome]:
        progress = [wire.tagged(item.progress) for item in items]
        outcomes: list[ExtendOutcome] = self._call(
            "select millpond.extend(%s, %s::bigint, %s::uuid[], %s::integer[], %s::text[], %s::bigint)",
            queue, lease, *wire.holds(items), progress if any(progress) else None, self._now(),
        )[0][0]  # fmt: skip
        return outcomes

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        found: list[State | None] = []
        for answer in self._call("select millpond.cancel(%s::uuid[], %s::bigint)", list(ids), self._now())[0][0]:
            state = answer.rpartition(" ")[2]
            found.append(None if state == "" else "cancelled" if state in ("scheduled", "waiting", "running") else state)
        return found

    def sweep(self, limit: int) -> Swept:
        told = self._call("select millpond.sweep(%s, %s::bigint)", limit, self._now())[0][0]
        if told["now"] - self._looked_for_idle >= LOOK_FOR_IDLE_EVERY:
            self._looked_for_idle = told["now"]
            rows = self._call("select millpond.idle_queues(%s)", 2_147_483_647)
            self._idle.seen((row[0] for row in rows), told["now"])
            if names := self._idle.long(told["now"])[:QUEUES_PER_SWEEP]:
                self._call("select millpond.remove_queues(%s::text[])", names)
        lost = [Lost(each["id"], each["queue"], each["attempt"], each["state"]) for each in told["lost"]]
        return Swept(lost, told["promoted"], told["expired"], told["more"], told["nextDue"], told["queues"])

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        rows = self._call("select millpond.find(%s::uuid[], %s)", list(ids), self._listener())
        found = {row[0]["id"]: wire.record(row[0]) for row in rows}
        for record in found.values():
            self._asked("finished", record.queue)
        return [found.get(id) for id in ids]

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        rows = self._call("select millpond.stats(%s, %s, %s::bigint)", queue, minutes, self._now())
        return [wire.queue_stats(row[0]) for row in rows]

    def record(self, slices: Sequence[Slice]) -> None:
        given = [
            {"queue": each.queue, "priority": each.priority, "metric": each.metric, "bucket": bucket, "count": count}
            for each in slices
            for bucket, count in each.buckets.items()
        ]
        self._call("select millpond.record(%s::json, %s::bigint)", json.dumps(given), self._now())

    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Record]:
        rows = self._call("select millpond.list(%s, %s, %s, %s::uuid)", queue, state, limit, after)
        return [wire.record(row[0]) for row in rows]

    def requeue_ids(self, ids: Sequence[str]) -> int:
        return self._requeue(list(ids), None, None)

    def requeue_queue(self, queue: str, limit: int) -> int:
        return self._requeue(None, queue, limit)

    def _requeue(self, *given: object) -> int:
        sql = "select millpond.requeue(%s::uuid[], %s, %s::integer, %s::bigint)"
        return len(self._call(sql, *given, self._now())[0][0])

    def _make_bells(self, ring: Callable[[Bell], None]) -> Bells:
        return Bells(self._url, self._schema.name, ring)

    def begin(self) -> HandlerTransaction:
        with coded():
            connection = connect(self._url)
            run(connection, "begin isolation level read committed")
        return PostgresTransaction(connection, self._schema, self._now)

    def close(self) -> None:
        self._stop_listening()
        self._connection.close()

    def _listener(self) -> str | None:
        return self._bells.listener if self._bells else None

    def _asked(self, kind: Any, queue: str) -> None:
        if self._bells:
            self._bells.asked(kind, queue)

    def _now(self) -> int | None:
        return self._clock() if self._clock else None

    def _call(self, sql: str, *parameters: object) -> Rows:
        return self._connection.call(self._schema.sql(sql), *parameters)


_COMPLETE: Final = "select millpond.complete(%s, %s::uuid[], %s::integer[], %s::text[], %s::bigint)"


def _completion(queue: str, items: Sequence[Completion], now: int | None) -> list[object]:
    results = [wire.tagged(item.result) for item in items]
    return [queue, *wire.holds(items), results if any(results) else None, now]


class PostgresTransaction(HandlerTransaction):
    """A handler's statements have no deadline."""

    def __init__(self, connection: Connected, schema: Schema, now: Callable[[], int | None]) -> None:
        self.connection: Connected = connection
        self._schema, self._now = schema, now

    def complete(self, queue: str, item: Completion) -> Outcome:
        with coded():
            rows = run(self.connection, self._schema.sql(_COMPLETE), _completion(queue, [item], self._now()))
            outcome = wire.outcomes(rows[0][0], 1)[0]
            run(self.connection, "commit" if outcome == "ok" else "rollback")
            return outcome

    def close(self) -> None:
        # What is not committed is rolled back.
        self.connection.close()
