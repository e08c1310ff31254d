"""The PostgreSQL store. Each operation is one call of a function of the contract, in a transaction of its own.

Bells: LISTEN on a connection of its own. While it stands, `listener` is passed with calls that find nothing: the server
notifies once, and only a listener that asked. After each new LISTEN anything may have happened meanwhile, so all that
this store has asked for rings. Behind a pooler nothing is heard: who waits looks once a second.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from millpond.encoding import Body, Encoding
from millpond.errors import LostAnswer, MillpondError
from millpond.jobs import (
    BELL_KINDS, LIVE, Bell, BellKind, Claimed, ClaimedJob, Completion, Held, JobError, Lost, NewJob, Outcome, Pushed,
    Record, Requeued, State, Swept
)
from millpond.queues import LIMITS, Group, GroupLimits, QueueLimits, QueueStats, Slice
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.idle import IdleQueues
from millpond.stores.postgres.connection import Connected, Connection, coded, connect, run
from millpond.stores.postgres.install import Schema
from millpond.stores.wire import camel, read, to_json

PUSH_AGAIN_FOR: Final = 10.0
LOOK_FOR_IDLE_EVERY: Final = 60_000
SILENCE: Final = 15.0
WAIT: Final = 0.1
MOST_FENCE: Final = 2**31 - 1
_TAGS: Final[dict[str, Encoding]] = {"j": "json", "m": "msgpack", "b": "bytes"}
_TYPES: Final = {
    "ids": "uuid[]", "fences": "integer[]", "pauses": "bigint[]", "results": "text[]",
    "progress": "text[]", "names": "text[]",
}  # fmt: skip
_CLAIMED: Final = ("id", "fence", "attempt", "attempts", "priority", "pushed_at", "due_at", "data")
_CLAIMED_MORE: Final = ("key", "group", "timeout", "trace")


class PostgresStore(Store):
    def __init__(self, url: str, schema: str = "millpond", clock: Clock | None = None) -> None:
        self._url, self._schema, self._clock = url, Schema(schema), clock
        self._idle, self._looked_for_idle = IdleQueues(), 0
        self._name, self._listens = secrets.token_hex(8), False
        self._asked: set[tuple[BellKind, str]] = set()
        with coded():
            self._connection = Connection(url)
            self._install = self._schema.open(self._connection.open())

    def _configure(self, queue: str, settings: Mapping[str, Any]) -> None:
        given = {name: value for name, value in settings.items() if name not in (*LIMITS, "backoff")}
        given |= {f"set_{name}": True for name in given.keys() & {"capacity", "timeout"}}
        if "backoff" in settings:
            given |= {f"backoff_{name}": value for name, value in vars(settings["backoff"]).items()}
        limits = {name: settings[name] for name in LIMITS if name in settings}
        self._call("configure", queue=queue, **given, limits=to_json(limits or None))

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        self._call("limit_group", queue=queue, group=group, limits=to_json(limits))

    def push(self, jobs: Sequence[NewJob], tx: psycopg.Connection[Any] | None = None) -> Sequence[Pushed]:
        if tx is not None:
            return self._push_within(tx, jobs)
        end, again = time.monotonic() + PUSH_AGAIN_FOR, False
        while True:
            try:
                given = _push(jobs, own=True, again=again, listener=self._listener, now=self._now)
                return self._pushed(jobs, self._call("push_jobs", **given)[0][0])
            except MillpondError as error:
                # After a lost answer nobody knows whether the jobs are stored. Whatever comes now, only an answer tells.
                again = again or isinstance(error, LostAnswer)
                if not again or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def _push_within(self, tx: psycopg.Connection[Any], jobs: Sequence[NewJob]) -> list[Pushed]:
        # This look cannot fail on the server, which would abort the caller's transaction.
        if tx.info.transaction_status != TransactionStatus.INTRANS:
            raise MillpondError("TransactionMismatch", "tx is not a psycopg connection with an open transaction")
        for queue in {job.queue for job in jobs}:
            # Others would wait for a queue that the caller's transaction makes.
            self._call("make_queue", queue=queue)
        with coded(), tx.transaction():
            try:
                install = self._schema.run(tx, "select millpond.installed() ->> 'install'")[0][0]
            except psycopg.errors.DatabaseError:
                install = None
            if install != self._install:
                raise MillpondError("TransactionMismatch", "tx is on another database than the store")
            rows = self._schema.run(tx, *_statement("push_jobs", _push(jobs, own=False, now=self._now)))
        return self._pushed(jobs, rows[0][0])

    def _pushed(self, jobs: Sequence[NewJob], answers: Sequence[str]) -> list[Pushed]:
        found = []
        for job, answer in zip(jobs, answers, strict=True):
            status: Any
            status, id = answer.split(" ")
            if status == "full":
                self._ask("room", job.queue)
            found.append(Pushed(status, id))
        return found

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        self._ask("work", queue)
        self._ask("cancelled", queue)
        given = {
            "queue": queue, "worker": worker, "limit": limit, "lease": lease, "min_priority": min_priority,
            "per_group": per_group,
        }  # fmt: skip
        for _ in range(2):
            at, holds, jobs, retry_after, asleep, _bounded, limited, _slots = self._call(
                "claim", **given, listener=self._listener, now=self._now
            )[0]
            # A push that runs at this moment may not notify this process.
            if not asleep:
                break
        return Claimed(at, holds, retry_after, limited, [_claimed(*each) for each in json.loads(jobs or "[]")])

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        given: dict[str, Any] = {"queue": queue, "now": self._now}
        if op == "fail":
            failures = [
                {"id": item.id, "fence": _fence(item), "error": item.error.to_json(), "delay": item.delay} for item in items
            ]
            given["failures"] = json.dumps(failures)
        else:
            given |= _holds(items)
        match op:
            case "complete":
                given["results"] = _bodies(item.result for item in items)
            case "release":
                given["pauses"] = [item.pause for item in items]
            case "extend":
                given |= {"lease": lease, "progress": _bodies(item.progress for item in items)}
        answer = self._call(op, **given)[0][0]
        return answer if op in ("fail", "extend") else _outcomes(answer, items)

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        states = [answer.rpartition(" ")[2] for answer in self._call("cancel", ids=list(ids), now=self._now)[0][0]]
        return ["cancelled" if state in LIVE else state or None for state in states]

    def sweep(self, limit: int) -> Swept:
        told = self._call("sweep", limit=limit, now=self._now)[0][0]
        now = told["now"]
        if now - self._looked_for_idle >= LOOK_FOR_IDLE_EVERY:
            self._looked_for_idle = now
            self._idle.seen((row[0] for row in self._call("idle_queues", limit=2**31 - 1)), now)
            if names := self._idle.long(now):
                self._call("remove_queues", names=names)
        return read(Swept, told, lost=[Lost(**each) for each in told["lost"]])

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        found = {row[0]["id"]: _record(row[0]) for row in self._call("find", ids=list(ids), listener=self._listener)}
        for record in found.values():
            self._ask("finished", record.queue)
        return [found.get(id) for id in ids]

    def ahead(self, id: str) -> int | None:
        ahead: int | None = self._call("ahead", id=id)[0][0]
        return ahead

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        return [_stats(row[0]) for row in self._call("stats", queue=queue, minutes=minutes, now=self._now)]

    def record(self, slices: Sequence[Slice]) -> None:
        self._call("record", slices=json.dumps(slices, default=vars), now=self._now)

    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Record]:
        return [_record(row[0]) for row in self._call("list", queue=queue, state=state, limit=limit, after=after)]

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        rows = self._call("groups", queue=queue, limit=limit, after=after, group=group, now=self._now)
        return [read(Group, row[0], limits=_limits(GroupLimits, row[0])) for row in rows]

    def requeue_ids(self, ids: Sequence[str]) -> Requeued:
        at, queues = self._call("requeue", ids=list(ids), now=self._now)[0]
        return Requeued(len(queues), at)

    def requeue_queue(self, queue: str, limit: int, until: int | None = None) -> Requeued:
        at, queues = self._call("requeue", queue=queue, limit=limit, now=self._now, until=until)[0]
        return Requeued(len(queues), at)

    def begin(self) -> HandlerTransaction:
        with coded():
            return PostgresTransaction(self, connect(self._url))

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        with coded(), connect(self._url) as connection:
            try:
                while not over.is_set():
                    # Sent again after a silence: a connection that is dead without a word fails here.
                    run(connection, f"listen {self._schema.name}")
                    if not self._listens:
                        self._listens = True
                        yield from [Bell(kind, queue) for kind, queue in tuple(self._asked)]
                    heard = time.monotonic()
                    while not over.is_set() and time.monotonic() - heard < SILENCE:
                        for notify in connection.notifies(timeout=WAIT):
                            heard = time.monotonic()
                            told, _, queue = notify.payload.partition(":")
                            yield from [Bell(kind, queue) for kind in BELL_KINDS if kind == told]
            finally:
                self._listens = False

    @property
    def _listener(self) -> str | None:
        return self._name if self._listens else None

    def _ask(self, kind: BellKind, queue: str) -> None:
        self._asked.add((kind, queue))

    @property
    def _now(self) -> int | None:
        return self._clock() if self._clock else None

    def _close(self) -> None:
        self._connection.close()

    def _call(self, function: str, **given: Any) -> Any:
        sql, *parameters = _statement(function, given)
        return self._connection.call(self._schema.sql(sql), parameters)


class PostgresTransaction(HandlerTransaction):
    """A handler's statements have no deadline."""

    def __init__(self, store: PostgresStore, connection: Connected) -> None:
        self.connection, self._store = connection, store
        run(connection, "begin isolation level read committed")

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        results = _bodies(item.result for item in items)
        statement = _statement("complete", {"queue": queue, **_holds(items), "results": results, "now": self._store._now})
        with coded():
            outcomes = _outcomes(self._store._schema.run(self.connection, *statement)[0][0], items)
            run(self.connection, "rollback" if "stale" in outcomes else "commit")
            return outcomes


def _statement(function: str, given: Mapping[str, Any]) -> tuple[str, *tuple[Any, ...]]:
    """A call of a function with named arguments."""
    named = ", ".join(f'"{name}" => %s::{_TYPES[name]}' if name in _TYPES else f'"{name}" => %s' for name in given)
    return f"select * from millpond.{function}({named})", *given.values()


def _push(jobs: Sequence[NewJob], **more: Any) -> dict[str, Any]:
    fields = [{camel(name): value for name, value in vars(job).items()} | {"data": _tagged(job.data)} for job in jobs]
    return {"jobs": json.dumps(fields), **more}


def _fence(item: Held) -> int:
    # 0 is nobody's.
    return item.fence if item.fence <= MOST_FENCE else 0


def _holds(items: Sequence[Held]) -> dict[str, Any]:
    return {"ids": [item.id for item in items], "fences": [_fence(item) for item in items]}


def _outcomes(valid: Sequence[int] | None, items: Sequence[Held]) -> list[Outcome]:
    """`valid`: positions from 1; None: all."""
    return ["ok" if valid is None or at in valid else "stale" for at in range(1, len(items) + 1)]


def _tagged(body: Body | None) -> str | None:
    if body is None:
        return None
    return body.encoding[0] + (body.body if isinstance(body.body, str) else base64.b64encode(body.body).decode())


def _bodies(bodies: Iterator[Body | None]) -> list[str | None] | None:
    tagged = [_tagged(body) for body in bodies]
    return tagged if any(tagged) else None


def _body(encoding: Encoding, text: str) -> Body:
    return Body(encoding, text if encoding == "json" else base64.b64decode(text))


def _claimed(*fields: Any) -> ClaimedJob:
    told = dict(zip(_CLAIMED, fields))
    encoding: Any
    *more, encoding = fields[8] if len(fields) > 8 else (None, None, None, None, "json")
    return ClaimedJob(**told | dict(zip(_CLAIMED_MORE, more)) | {"data": _body(encoding, told["data"])})


def _record(told: Mapping[str, Any]) -> Record:
    bodies = {name: told[name] and _body(_TAGS[told[name][0]], told[name][1:]) for name in ("data", "progress", "result")}
    return read(Record, told, **bodies, error=None if told["error"] is None else JobError.from_json(told["error"]))


def _limits(kind: type[Any], told: Mapping[str, Any]) -> Any:
    return None if told["limits"] is None else read(kind, told["limits"])


def _stats(told: Mapping[str, Any]) -> QueueStats:
    slices = [
        read(Slice, each, buckets={int(at): count for at, count in each["buckets"].items()}) for each in told["histograms"]
    ]
    return read(QueueStats, told, limits=_limits(QueueLimits, told), histograms=slices)
