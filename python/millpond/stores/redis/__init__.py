"""The Redis store, on a single server. Each operation is one call of a script per partition of a queue."""

from __future__ import annotations

import re
import secrets
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, Unpack

from redis.exceptions import RedisError

from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, BellKind, Claimed, Completion, ExtendOutcome, Extension, Failure, FailOutcome, Held, NewJob,
    Outcome, Pushed, QueueStats, Record, Settings, Slice, State, Swept, check_settings,
)
from millpond.store import Clock, HandlerTransaction
from millpond.stores.bells import ListeningStore
from millpond.stores.redis import endings, look
from millpond.stores.redis.bells import Bells
from millpond.stores.redis.claim import Claims
from millpond.stores.redis.connection import Argument, Connection
from millpond.stores.redis.push import MOST_ITEMS, Pusher
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part
from millpond.stores.redis.settings import QueueSettings
from millpond.stores.redis.stats import record, stats_of
from millpond.stores.redis.sweep import Sweep
from millpond.stores.redis.wire import to_bytes

CANCELLED: Final[tuple[State | None, ...]] = ("done", "dead", "cancelled", "cancelled", "cancelled", None)
"""What the answers of the script mean; the last one is −1."""


class RedisStore(ListeningStore[Bells]):
    """`partitions` of the queues that this store registers first. `prefix` begins every key."""

    def __init__(self, url: str, prefix: str = "millpond", partitions: int = 1, clock: Clock | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", prefix) or not 1 <= partitions <= 256:
            raise MillpondError("InvalidOption", "a prefix has 1 to 64 of A–Z a–z 0–9 _ - . and partitions are 1 to 256")
        self._prefix, self._origin = prefix, secrets.token_hex(8)
        self._connection = Connection(url, prefix, self._origin, clock)
        self._registry = Registry(self._connection, prefix, partitions)
        self._claims = Claims(self._registry)
        self._settings = QueueSettings(self._registry)
        self._check_server()

    def _check_server(self) -> None:
        info: dict[str, Any] = self._connection.repeat(lambda _: self._connection.client.info())
        version = tuple(int(each) for each in str(info["redis_version"]).split(".")[:2])
        if version < (6, 2):
            raise MillpondError("NotSupported", f"Redis is {info['redis_version']}; 6.2 or newer is needed")
        if int(info["maxmemory"]) > 0 and info["maxmemory_policy"] != "noeviction":
            raise MillpondError("StoreUnavailable", f"Redis drops jobs when it is full: {info['maxmemory_policy']}")
        if not int(info["aof_enabled"]):
            warnings.warn("Redis keeps no append-only file: a crash of the server loses jobs", stacklevel=3)

    def configure(self, queue: str, **settings: Unpack[Settings]) -> None:
        check_settings(queue, settings)
        if settings:
            self._settings.configure(queue, settings)
        if "capacity" in settings:
            self._ring("room", queue)
        if settings.get("paused") is False:
            self._ring("work", queue)

    def push(self, jobs: Sequence[NewJob], tx: Any = None) -> Sequence[Pushed]:
        if tx is not None:
            raise MillpondError("NotSupported", "Redis is not the caller's database")
        pusher = Pusher(self._registry, jobs)
        pushed = pusher.push()
        for queue in pusher.lost_settings:
            self._settings.restore(queue)
        for queue in {job.queue for job, outcome in zip(jobs, pushed, strict=True) if outcome.status == "pushed"}:
            self._ring("work", queue)
        return pushed

    def claim(self, queue: str, worker: str, limit: int, lease: int | None = None) -> Claimed:
        claimed, known = self._claims.claim(queue, worker, limit, lease)
        if not known:
            self._settings.restore(queue)
        if claimed.jobs:
            self._ring("room", queue)
        return claimed

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        outcomes = endings.end(self._registry, queue, items, endings.complete)
        self._ring_finished(queue, [item.id for item, told in zip(items, outcomes, strict=True) if told == 0])
        return ["stale" if told else "ok" for told in outcomes]

    def fail(self, queue: str, items: Sequence[Failure]) -> Sequence[FailOutcome]:
        outcomes = endings.end(self._registry, queue, items, endings.fail)
        told = list(zip(items, outcomes, strict=True))
        self._ring_finished(queue, [item.id for item, outcome in told if outcome == 2])
        if any(outcome == 0 and item.delay == 0 for item, outcome in told):
            self._ring("work", queue)
        names: tuple[FailOutcome, ...] = ("retry", "stale", "dead")
        return [names[outcome] for outcome in outcomes]

    def release(self, queue: str, items: Sequence[Held]) -> Sequence[Outcome]:
        outcomes = endings.end(self._registry, queue, items, endings.release)
        if 0 in outcomes:
            self._ring("work", queue)
        return ["stale" if told else "ok" for told in outcomes]

    def extend(self, queue: str, items: Sequence[Extension], lease: int | None = None) -> Sequence[ExtendOutcome]:
        names: tuple[ExtendOutcome, ...] = ("ok", "stale", "cancelled")
        outcomes = endings.end(self._registry, queue, items, endings.extend(lease))
        return [names[outcome] for outcome in outcomes]

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        states: dict[str, State | None] = {}
        for part, known in look.locate(self._registry, ids).items():
            for chunk in look.chunks(known, MOST_ITEMS):
                answer = self._connection.on_part("cancel", part, [], [to_bytes(id) for id in chunk])
                states |= {id: CANCELLED[outcome] for id, outcome in zip(chunk, answer, strict=True)}
                self._ring_cancelled(part.queue, list(zip(chunk, answer, strict=True)))
        return [states.get(id) for id in ids]

    def sweep(self, limit: int) -> Swept:
        self._claims.settle()
        sweep = Sweep(self._registry, self._prefix, limit)
        swept = sweep.run()
        for queue in sweep.woken:
            self._ring("work", queue)
        for lost in swept.lost:
            if lost.state == "dead":
                self._ring("finished", lost.queue, (lost.id,))
        if swept.queues < len(self._registry.known):
            self._register_lost_queues()
        return swept

    def _register_lost_queues(self) -> None:
        """The registry has fewer queues than this client knows."""
        there = self._registry.all()
        for queue in [queue for queue in self._registry.known if queue not in there]:
            if sum(stats_of(self._registry, queue, 0).counts.values()) > 0:
                self._registry.register(queue)
            else:
                self._registry.forget(queue)

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        found = look.find(self._registry, ids)
        return [found[id].record if id in found else None for id in ids]

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        there = self._registry.all()
        self._registry.known |= there
        return [stats_of(self._registry, name, minutes) for name in there if queue in (None, name)]

    def record(self, slices: Sequence[Slice]) -> None:
        record(self._registry, slices)

    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Record]:
        return [each.record for each in look.list_jobs(self._registry, queue, state, limit, after)]

    def requeue_ids(self, ids: Sequence[str]) -> int:
        by_part: dict[Part, list[Argument]] = {}
        for id, found in look.find(self._registry, ids).items():
            by_part.setdefault(found.part, []).append(to_bytes(id))
        total = 0
        for part, items in by_part.items():
            for start in range(0, len(items), MOST_ITEMS):
                total += self._requeue(part, 0, 0, items[start : start + MOST_ITEMS])[0]
        return total

    def requeue_queue(self, queue: str, limit: int) -> int:
        total = 0
        for part in self._registry.parts(queue):
            start = 0
            while (most := min(MOST_ITEMS, limit - total)) > 0:
                came, stayed = self._requeue(part, most, start, [])
                total += came
                start += stayed
                if came + stayed < most:
                    break
        return total

    def _requeue(self, part: Part, limit: int, start: int, items: Sequence[Argument]) -> tuple[int, int]:
        came, stayed = self._connection.on_part("requeue", part, [limit, start], items)
        if came:
            self._ring("work", part.queue)
        return came, stayed

    def _make_bells(self, ring: Callable[[Bell], None]) -> Bells:
        return Bells(self._connection, self._origin, ring)

    def begin(self) -> HandlerTransaction:
        raise MillpondError("NotSupported", "Redis is not the caller's database")

    def close(self) -> None:
        self._stop_listening()
        self._connection.closed = True
        try:
            self._connection.client.close()
        except RedisError:
            pass  # it was closed by the server

    def _ring(self, kind: BellKind, queue: str, ids: tuple[str, ...] = ()) -> None:
        if self._bells:
            self._bells.ring(Bell(kind, queue, ids))

    def _ring_finished(self, queue: str, ids: Sequence[str]) -> None:
        if ids:
            self._ring("finished", queue, tuple(ids))

    def _ring_cancelled(self, queue: str, answers: Sequence[tuple[str, int]]) -> None:
        ended = tuple(id for id, outcome in answers if outcome in (3, 4))
        if any(outcome == 4 for _, outcome in answers):
            self._ring("cancelled", queue, tuple(id for id, outcome in answers if outcome == 4))
        self._ring_finished(queue, ended)
        if any(outcome == 3 for _, outcome in answers):
            self._ring("room", queue)
