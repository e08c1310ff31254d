"""The Redis store, on a single server. Each operation is one call of a script per partition of a queue.

Bells: a subscription for those of other processes; the store rings its own. After each new one, `work` and `cancelled`
ring for all queues that this process claimed from.
"""

from __future__ import annotations

import random
import re
import secrets
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import msgpack
from redis.exceptions import RedisError

from millpond.backoff import Backoff
from millpond.errors import MillpondError
from millpond.histogram import merge
from millpond.jobs import (
    BELL_KINDS, FINAL, STATES, Bell, BellKind, Claimed, Listed, NewJob, Pushed, Record, Requeued, State, Swept,
    cursor_fields,
)
from millpond.queues import LIMITS, METRICS, Given, Group, GroupLimits, QueueLimits, QueueStats, Slice
from millpond.store import Clock, HandlerTransaction, Store
from millpond.stores.redis.claim import Claims
from millpond.stores.redis.connection import MOST_ITEMS, Argument, Connection, chunks
from millpond.stores.redis.push import Pusher
from millpond.stores.redis.registry import Registry, group_by_part
from millpond.stores.redis.routing import Part, group_index, partition_of
from millpond.stores.given import Settled, in_python, settle
from millpond.stores.redis.shares import check_shared, rate_in, rate_list, settings_of, share_of
from millpond.stores.redis.sweep import Sweep
from millpond.stores.redis.wire import (
    DESCRIBED, described, encoded, pack_error, pack_setting, to_bytes, to_id, unpack_absent,
)
from millpond.stores.wire import camel

BELLS_WAIT: Final = 0.1
EVICTION_PAUSE: Final = 10.0
"""Seconds between two looks at the server's eviction policy."""
DEFAULTS: Final[Mapping[str, Any]] = {
    "keep_done": 3_600_000, "keep_dead": 604_800_000, "paused": False, "attempts": 10, "backoff": Backoff(), "lease": 30_000,
}  # fmt: skip
ENDS: Final = {
    "complete": ("ok", "stale"), "release": ("ok", "stale", "paused"), "fail": ("retry", "stale", "dead"),
    "extend": ("ok", "stale", "cancelled"),
}  # fmt: skip
MORE: Final[Mapping[str, Any]] = {
    "complete": lambda _: (), "release": lambda _: (), "extend": lambda item: (encoded(item.progress),),
    "fail": lambda item: (pack_error(item.error), _delay(item.delay)),
}  # fmt: skip
"""What follows the id and the fence of a claim."""
CANCELS: Final[tuple[State | None, ...]] = (*FINAL, "cancelled", "cancelled", None)
"""What the answers of the script mean; the last one is −1."""


class RedisStore(Store):
    """`partitions` of the queues that this store registers first. `prefix` begins every key."""

    def __init__(self, url: str, prefix: str = "millpond", partitions: int = 1, clock: Clock | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", prefix) or not 1 <= partitions <= 256:
            raise MillpondError("InvalidOption", "a prefix has 1 to 64 of A–Z a–z 0–9 _ - . and partitions are 1 to 256")
        self._origin = secrets.token_hex(8)
        self._connection = Connection(url, prefix, self._origin, clock)
        self._registry = Registry(self._connection, prefix, partitions)
        self._claims = Claims(self._registry)
        self._made: dict[str, dict[str, Any]] = {}
        """Settings that this client has made, in case the server loses them."""
        self._claimed_from: set[str] = set()
        self._looked_at, self._evicting = time.monotonic(), ""
        self._check_server()

    def _check_server(self) -> None:
        info: dict[str, Any] = self._connection.repeat(lambda _: self._connection.client.info())
        version = tuple(int(each) for each in str(info["redis_version"]).split(".")[:2])
        if version < (6, 2):
            raise MillpondError("NotSupported", f"Redis is {info['redis_version']}; 6.2 or newer is needed")
        if policy := _evicting(info):
            raise MillpondError("StoreUnavailable", f"Redis drops jobs when it is full: {policy}")
        if not int(info["aof_enabled"]):
            warnings.warn("Redis keeps no append-only file: a crash of the server loses jobs", stacklevel=3)

    def _look_at_eviction(self) -> None:
        """The policy may be set while the server runs."""
        if time.monotonic() < self._looked_at + EVICTION_PAUSE:
            return
        self._looked_at = time.monotonic()
        policy = _evicting(self._connection.repeat(lambda _: self._connection.client.info("memory")))
        if policy and not self._evicting:
            text = f"Redis drops jobs when its memory is full (maxmemory-policy {policy}): set it to noeviction"
            warnings.warn(text, stacklevel=3)
        self._evicting = policy

    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        settled = self._apply(queue, settings, by, clear)
        if by == "code":
            self._made[queue] = self._made.get(queue, {}) | dict(settings)
        applied = in_python(settled.apply)
        if "capacity" in applied:
            self._rings("room", queue)
        if applied.get("paused") is False or applied.keys() & LIMITS:
            self._rings("work", queue)
        return settled.overridden

    def settings(self, queue: str) -> Given | None:
        if queue not in self._registry.all():
            return None
        texts = self._connection.on_part("given", self._registry.parts(queue)[0], [])
        return Given.from_texts(*texts) if texts else None

    def note_claims(self, queues: Sequence[str]) -> Sequence[bool]:
        there = self._registry.all()
        return [
            queue in there and self._connection.on_part("note-claims", self._registry.parts(queue)[0], [])[0] == 1
            for queue in queues
        ]

    def _restore(self, queue: str) -> None:
        """The server may have lost the queue's settings."""
        made = self._made.get(queue, {})
        if any(value != DEFAULTS.get(name) for name, value in made.items()):
            self._apply(queue, made, "code", ())

    def _apply(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Settled:
        self._registry.register(queue)
        parts = self._registry.parts(queue)
        check_shared(settings, ("capacity", "running", "rate"), len(parts))
        return [self._settle(part, len(parts), settings, by, clear) for part in parts][0]

    def _settle(self, part: Part, count: int, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Settled:
        """What comes into effect depends on what others have given. The script changes nothing where that is not what was thought here."""
        known = ("", "")
        while True:
            settled = settle(Given.from_texts(*known), settings, by, clear)
            head = ["\n".join(known), *settled.given.texts()]
            kept = self._send(part, settings_of(in_python(settled.apply), part.index, count), head)
            if not kept:
                return settled
            known = kept

    def _send(self, part: Part, settings: Mapping[str, Any], head: Sequence[object] = ()) -> tuple[str, str] | None:
        """What code and an operator have given, if it is not what the head says; then nothing was changed."""
        items = [item for name, value in settings.items() for item in (camel(name), pack_setting(value))]
        listed, *kept = self._connection.on_part("configure", part, head, items)
        if kept:
            return kept[0].decode(), kept[1].decode()
        if not listed:
            self._registry.confirm(part)
        return None

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        """A group's jobs are in one partition. Those without a group are in all of them, which share their limits."""
        self._registry.register(queue)
        parts = self._registry.parts(queue)
        home, count = group_index(group, len(parts)), 1 if group else len(parts)
        check_shared(vars(limits) if limits else {}, ("running", "rate"), count)
        for part in parts:
            if group and part.index != home:
                self._send(part, {"grouped": True})
                continue
            index = 0 if group else part.index
            rate = rate_list(limits.rate, index, count) if limits and limits.rate else False
            own = limits and [share_of(limits.running, index, count) or False, rate, limits.weight]
            if not self._connection.on_part("limit-group", part, [group, own])[0]:
                self._registry.confirm(part)
        self._rings("work", queue)

    def push(self, jobs: Sequence[NewJob], tx: Any = None) -> Sequence[Pushed]:
        if tx is not None:
            raise MillpondError("NotSupported", "Redis is not the caller's database")
        pusher = Pusher(self._registry, jobs)
        pushed = pusher.push()
        for queue in pusher.lost_settings:
            self._restore(queue)
        for queue in {job.queue for job, outcome in zip(jobs, pushed, strict=True) if outcome.status == "pushed"}:
            self._rings("work", queue)
        return pushed

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        self._claimed_from.add(queue)
        found, known = self._claims.claim(queue, worker, limit, lease, min_priority, per_group)
        if not known:
            self._registry.known.pop(queue, None)
            self._restore(queue)
        if found.jobs:
            self._rings("room", queue)
        return found

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        """In the partition that follows from the job's group, key or id. What is stale there may be in another."""
        parts, outcomes = self._registry.parts(queue), ["stale"] * len(items)
        homes = [partition_of(item.id, item.key, item.group, len(parts)) for item in items]
        for step in range(len(parts)):
            left = [at for at in range(len(items)) if outcomes[at] == "stale"]
            routed = ((homes[at] + step, at) for at in left)
            for part, chosen in group_by_part((parts[index % len(parts)], at) for index, at in routed).items():
                while chosen:
                    chunk = chosen[:MOST_ITEMS]
                    answer = self._end_part(op, part, [items[at] for at in chunk], lease)
                    for at, outcome in zip(chunk, answer):
                        outcomes[at] = ENDS[op][int(outcome)]
                    # Where jobs are large, the last ones have no answer, and are sent again.
                    chosen = chosen[len(answer) :] if answer else []
        ended = [(item, outcome) for item, outcome in zip(items, outcomes, strict=True) if outcome != "stale"]
        paused = [item.pause for item, outcome in ended if outcome == "paused"]
        for part in parts if paused and len(parts) > 1 else []:
            # The pause of the queue, not of a group.
            self._connection.on_part("configure", part, [], ["pause", pack_setting(max(paused))])
        if op == "complete" or op == "fail":
            self._rings_of("finished", queue, [item.id for item, outcome in ended if outcome != "retry"])
        if op == "release" and ended or any(outcome == "retry" and item.delay == 0 for item, outcome in ended):
            self._rings("work", queue)
        return ["ok" if outcome == "paused" else outcome for outcome in outcomes]

    def _end_part(self, op: str, part: Part, items: Sequence[Any], lease: int | None) -> Any:
        arguments = [each for item in items for each in (to_bytes(item.id), item.fence, *MORE[op](item))]
        head: list[object] = []
        match op:
            case "complete":
                fences = [item.fence for item in items]
                results = [encoded(item.result) for item in items] if any(item.result for item in items) else []
                head = [fences if len(set(fences)) > 1 else fences[0]]
                arguments = [b"".join(to_bytes(item.id) for item in items), *results]
            case "release":
                head = [[item.pause for item in items]]
            case "extend":
                head = [lease]
        return self._connection.on_part(op, part, head, arguments)

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        states: dict[str, State | None] = {}
        for part, chunk, answer in self._on_ids("cancel", ids):
            told = dict(zip(chunk, answer, strict=True))
            states |= {id: CANCELS[outcome] for id, outcome in told.items()}
            self._rings_of("cancelled", part.queue, [id for id in told if told[id] == 4])
            self._rings_of("finished", part.queue, [id for id in told if told[id] in (3, 4)])
            if 3 in answer:
                self._rings("room", part.queue)
        return [states.get(id) for id in ids]

    def _on_ids(self, name: str, ids: Sequence[str]) -> Iterator[tuple[Part, Sequence[str], list[Any]]]:
        """Calls a script with ids in the partitions that know them."""
        for part, known in self._registry.locate(ids).items():
            left: Sequence[str] = known
            while left:
                chunk = left[:MOST_ITEMS]
                answer = self._connection.on_part(name, part, [], [to_bytes(id) for id in chunk])
                # Where jobs are large, the last ones are left to another call.
                done = len(answer)
                if name == "find":
                    late, *answer = answer
                    done = len(chunk) - late
                yield part, chunk[:done], answer
                left = left[done:]

    def sweep(self, limit: int) -> Swept:
        self._claims.settle()
        self._look_at_eviction()
        sweep = Sweep(self._registry, limit)
        swept = sweep.run()
        for queue in sweep.woken:
            self._rings("work", queue)
        for lost in swept.lost:
            if lost.state == "dead":
                self._rings("finished", lost.queue, (lost.id,))
        if swept.queues < len(self._registry.known):
            # The registry has lost some of the queues that this client knows.
            for queue in self._registry.known.keys() - self._registry.all().keys():
                if sum(self._stats(queue, 0).counts.values()) > 0:
                    self._registry.register(queue)
                else:
                    self._registry.known.pop(queue)
        return swept

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        found = self._found(ids)
        return [found[id][1][0] if id in found else None for id in ids]

    def _found(self, ids: Sequence[str]) -> dict[str, tuple[Part, tuple[Record, int, int]]]:
        return {
            job[0].id: (part, job)
            for part, _, answer in self._on_ids("find", ids)
            for job in (described(part.queue, each) for each in chunks(answer, DESCRIBED))
        }

    def ahead(self, id: str) -> int | None:
        return next((answer[0] for _, _, answer in self._on_ids("ahead", [id]) if answer[0] >= 0), None)

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        there = self._registry.all()
        self._registry.known |= there
        return [self._stats(name, minutes) for name in there if queue in (None, name)]

    def _stats(self, queue: str, minutes: int) -> QueueStats:
        capacity: int | None = None
        oldest, limits, paused = -1, None, False
        starts, at_limit, held = list[int | None](), 0, 0
        given, claims = Given(), list[int | None]()
        counts = dict.fromkeys(STATES, 0)
        slices: dict[tuple[int, int], Slice] = {}
        parts = self._registry.parts(queue)
        partitions = len(parts)
        for part in parts:
            paused_here, share, *rest = self._connection.on_part("stats", part, [minutes])
            paused, oldest = paused or paused_here == 1, max(oldest, rest[len(STATES)])
            capacity = (capacity or 0) + share if share >= 0 else capacity
            limits = _added(limits, _limits(rest[len(STATES) + 1], partitions))
            next_start, at_limit_here, held_here = rest[len(STATES) + 2 : len(STATES) + 5]
            starts.append(_start(next_start))
            at_limit, held = at_limit + at_limit_here, held + held_here
            for state, count in zip(STATES, rest):
                counts[state] += count
            operator, claimed = rest[len(STATES) + 5 : len(STATES) + 7]
            given = Given.from_texts(None, operator)
            claims.append(claimed if claimed >= 0 else None)
            for minute in rest[len(STATES) + 7 :]:
                _, *numbers = msgpack.unpackb(minute)
                for priority, metric, bucket, count in chunks([int(each) for each in numbers], 4):
                    new = Slice(queue, priority, METRICS[metric], {})
                    merge(slices.setdefault((priority, metric), new).buckets, {bucket: count})
        return QueueStats(
            queue=queue, capacity=capacity, paused=paused, counts=counts, overrides=given.operator,
            last_claim=_least(*claims), oldest_waiting=oldest if oldest >= 0 else None,
            limits=limits, next_start=_least(*starts), groups_at_limit=at_limit, groups_held=held,
            histograms=list(slices.values()),
        )  # fmt: skip

    def record(self, slices: Sequence[Slice]) -> None:
        for queue in {each.queue for each in slices}:
            numbers = [
                number
                for each in slices if each.queue == queue
                for bucket, count in each.buckets.items()
                for number in (each.priority, METRICS.index(each.metric), bucket, count)
            ]  # fmt: skip
            self._connection.on_part("record", self._registry.parts(queue)[0], [numbers])

    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Listed]:
        last = cursor_fields(state, after) if after else None
        jobs: list[tuple[Listed, int, int]] = []
        for part in self._registry.look(queue):
            most, more = min(limit, MOST_ITEMS), 1
            place, items = _beyond(part, last) if last else (None, [])
            while more and most > 0:
                more, *told = self._connection.on_part("list", part, [state, most, place], items)
                for each in chunks(told, DESCRIBED):
                    record, at, moment = described(queue, each)
                    cursor = f"{state}.{record.priority}.{moment}.{at}.{part.index}.{record.id}"
                    jobs.append((Listed(**vars(record), cursor=cursor), at, moment))
                    most -= 1
                    # Jobs may be large, so that the page is a short one: it goes on here.
                    place, items = [True, record.priority, at, moment], [to_bytes(record.id)]
        # The sort is stable: jobs of the same time stay in the order of partitions, and within one as the script gave them.
        sign = -1 if state in FINAL else 1
        jobs.sort(key=lambda job: (-job[0].priority if state == "waiting" else 0, sign * job[2]))
        return [job[0] for job in jobs[:limit]]

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        """A group is in one partition; only the jobs without one are in several."""
        parts = self._registry.look(queue)
        asked = [parts[group_index(group, len(parts))]] if group else parts
        found = [each for part in asked for each in self._groups(part, len(parts), limit, after, group)]
        ungrouped = [each for each in found if not each.group]
        named = sorted((each for each in found if each.group), key=lambda each: each.group.encode())
        return [*([reduce(_joined, ungrouped)] if ungrouped else []), *named][:limit]

    def _groups(
        self, part: Part, partitions: int, limit: int, after: str | None, group: str | None
    ) -> Sequence[Group]:
        found: Sequence[Group] = []
        while len(found) < limit:
            last, *told = self._connection.on_part("groups", part, [min(limit - len(found), MOST_ITEMS), after, group])
            found = [*found, *(_group(each, partitions) for each in chunks(told, 5))]
            if last is None:
                break
            after = last.decode()
        return found

    def requeue_ids(self, ids: Sequence[str]) -> Requeued:
        located = self._registry.locate(ids).items()
        total, first = 0, 0
        for part, known in located:
            left: Sequence[str] = known
            while left:
                chunk = left[:MOST_ITEMS]
                came, _, now, late = self._requeue(part, [0, 0], chunk)
                total, first = total + came, max(first, now)
                left = left[len(chunk) - late :]
        return Requeued(total, first)

    def requeue_queue(self, queue: str, limit: int, until: int | None = None) -> Requeued:
        total, first = 0, None
        for part in self._registry.look(queue):
            start = 0
            while (most := min(MOST_ITEMS, limit - total)) > 0:
                came, stayed, now, late = self._requeue(part, [most, start, until or first], [])
                first = first or now
                total += came
                start += stayed
                if came + stayed < most and late == 0:
                    break
        return Requeued(total, first or 0)

    def _requeue(self, part: Part, head: Sequence[int | None], ids: Sequence[str]) -> tuple[int, int, int, int]:
        came, stayed, now, late = self._connection.on_part("requeue", part, [*head], [to_bytes(id) for id in ids])
        if came:
            self._rings("work", part.queue)
        return came, stayed, now, late

    def begin(self) -> HandlerTransaction:
        raise MillpondError("NotSupported", "Redis is not the caller's database")

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        try:
            with self._connection.client.pubsub() as subscription:
                subscription.subscribe(self._connection.channel)
                while not over.is_set():
                    message = subscription.get_message(timeout=BELLS_WAIT)
                    if message and message["type"] == "subscribe":
                        # Also after a lost connection. What was rung until now went unheard.
                        queues = tuple(self._claimed_from)
                        yield from [Bell(kind, queue) for queue in queues for kind in ("work", "cancelled")]
                    elif message and message["type"] == "message":
                        yield from self._heard(message["data"])
        except RedisError as error:
            raise MillpondError("StoreUnavailable", str(error)) from error

    def _heard(self, message: bytes) -> Iterator[Bell]:
        unpacker = msgpack.Unpacker()
        unpacker.feed(message)
        origin, queue, told = unpacker.unpack()
        ids = tuple(to_id(bytes(id)) for id in chunks(message[unpacker.tell() :], 16))
        if origin != self._origin:
            yield from [Bell(kind, queue, ids) for kind in BELL_KINDS if kind == told]

    def _rings(self, kind: BellKind, queue: str, ids: Sequence[str] = ()) -> None:
        if self._ring:
            self._ring(Bell(kind, queue, tuple(ids)))

    def _rings_of(self, kind: BellKind, queue: str, ids: Sequence[str]) -> None:
        if ids:
            self._rings(kind, queue, ids)

    def _close(self) -> None:
        self._connection.closed = True
        with suppress(RedisError):  # it was closed by the server
            self._connection.client.close()


def _evicting(info: Mapping[str, Any]) -> str:
    """The policy by which the server drops keys; empty: it drops none."""
    policy = str(info["maxmemory_policy"])
    return policy if int(info["maxmemory"]) > 0 and policy != "noeviction" else ""


def _beyond(part: Part, last: Sequence[str]) -> tuple[list[object], list[Argument]]:
    """Where the page after that place begins in a partition."""
    priority, moment, place, index = map(int, last[:4])
    if part.index == index:
        return [True, priority, place, moment], [to_bytes(last[4])]
    return [False, priority, False, moment, part.index > index], []


def _delay(delay: int | str | None) -> str:
    return "" if delay is None else f"r{random.random()}" if delay == "backoff" else str(delay)


def _limits(packed: bytes, partitions: int) -> QueueLimits | None:
    if not packed:
        return None
    running, rate, grouped, group_running, group_rate = unpack_absent(packed)
    return QueueLimits(
        running=running, rate=rate_in(rate, partitions), grouped=bool(grouped), group_running=group_running,
        group_rate=rate_in(group_rate),
    )  # fmt: skip


def _added(one: QueueLimits | None, other: QueueLimits | None) -> QueueLimits | None:
    """The limits of two partitions. The rates are the same in all."""
    if one is None or other is None:
        return one or other
    return replace(one, running=_sum(one.running, other.running), grouped=one.grouped or other.grouped)


def _joined(one: Group, other: Group) -> Group:
    """The jobs without a group, in two partitions."""
    both = one.limits and other.limits
    limits = replace(both, running=_sum(one.limits.running, both.running)) if one.limits and both else None
    return replace(
        one, limits=limits, waiting=one.waiting + other.waiting, running=one.running + other.running,
        next_start=_least(one.next_start, other.next_start),
    )  # fmt: skip


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _least(*times: int | None) -> int | None:
    return min((each for each in times if each is not None), default=None)


def _start(told: int) -> int | None:
    return None if told < 0 else told


def _group(told: Sequence[Any], partitions: int) -> Group:
    name, own, waiting, running, next_start = told
    most, rate, weight = unpack_absent(own) if own else (None, None, 1)
    limits = GroupLimits(most, rate_in(rate, 1 if name else partitions), weight) if own else None
    return Group(
        group=name.decode(), limits=limits, waiting=waiting, running=running,
        next_start=_start(next_start),
    )  # fmt: skip
