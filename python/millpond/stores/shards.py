"""Several stores of one kind as one: contract/shards.md. A store that is away harms only its queues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final, TypeVar, cast

from millpond.encoding import Body
from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, BulkChange, BulkStep, Claimed, JobFilter, JobOutcome, JobUpdate, NewJob, Page, Pushed, Record, Relatives, Removed, Requeued,
    RestoreOutcome, State, Swept, UpdateOutcome,
)
from millpond.queues import Group, GroupLimits, QueueStats, SettingsReport, Slice, WorkerBeat, WorkerRecord
from millpond.schedules import (
    MOST_DUE, Declaration, DeclareOutcome, DueSchedules, Fired, Firing, ScheduledJob, ScheduleRecord,
)
from millpond.steps import EntriesFrom, EntriesPage, Signal, Signalled
from millpond.store import LISTEN_AGAIN_AFTER, HandlerTransaction, Store

T = TypeVar("T")
Item = TypeVar("Item")
Out = TypeVar("Out")

MARK: Final = "millpond.shards"
PATIENCE: Final = 0.1
"""Seconds that a call to all waits for a store that was away at the last one."""


@lru_cache(10_000)
def shard_of(queue: str, count: int) -> int:
    """Rendezvous hashing: of all numbers, the one whose hash with the name is the highest."""
    scores = [sha256(f"{shard}/{queue}".encode()).digest()[:8] for shard in range(count)]
    return scores.index(max(scores))


class Member:
    """One of the stores. It may be away when the others are opened: it is opened by a later call then."""

    def __init__(self, shard: int, count: int, opener: Callable[[], Store]) -> None:
        self.name = f"shard {shard + 1} of {count}"
        self._shard, self._count, self._opener = shard, count, opener
        self._lock, self._store, self._closed = threading.Lock(), cast("Store | None", None), False
        self.away: MillpondError | None = None
        self._pool = ThreadPoolExecutor(8, f"millpond-{shard}")

    def store(self) -> Store:
        with self._lock:
            if self._closed:
                raise MillpondError("Closed", "the store is closed")
            if self._store is None:
                store = self._opener()
                try:
                    self._check_mark(store)
                except BaseException:
                    store.close()
                    raise
                self._store = store
            return self._store

    def _check_mark(self, store: Store) -> None:
        version, rule = f"{self._shard + 1}/{self._count}", "Every process names the same stores in the same order"
        try:
            found = store.schedules(1, name=MARK)
        except MillpondError as error:
            if error.code == "StoreFailed":
                return  # A PostgreSQL role for producers may not read schedules: others check, then.
            raise
        if found and found[0].version != version:
            raise MillpondError("ShardMismatch", f"{self.name} was opened as shard {found[0].version} before. {rule}")
        if not found:
            if stray := [each.queue for each in store.stats() if shard_of(each.queue, self._count) != self._shard]:
                raise MillpondError("ShardMismatch", f"{self.name} was in use before: it has the queue {stray[0]}. {rule}")
            job = ScheduledJob(queue=MARK, data=Body("json", f'{{"shard":"{version}"}}'))
            store.declare([Declaration(name=MARK, version=version, when="every 1d", missed="skip", paused=True, job=job)])

    def ask(self, use: Callable[[Store], T]) -> Future[T]:
        """In a thread of its own. Errors name the store."""
        if self._closed:
            raise MillpondError("Closed", "the store is closed")
        return self._pool.submit(self._ask, use)

    def _ask(self, use: Callable[[Store], T]) -> T:
        try:
            answer = use(self.store())
        except MillpondError as error:
            if error.code == "Closed":
                raise
            named = MillpondError(error.code, f"{self.name}: {error.message}")
            self.away = named if error.code == "StoreUnavailable" else None
            raise named from error
        self.away = None
        return answer

    def close(self) -> None:
        with self._lock:
            self._closed, store = True, self._store
        if store:
            store.close()
        self._pool.shutdown(wait=False)


class ShardedStore(Store):
    def __init__(self, openers: Sequence[Callable[[], Store]]) -> None:
        count = len(openers)
        self._members = [Member(shard, count, opener) for shard, opener in enumerate(openers)]
        failures = [error for future in [each.ask(lambda _: None) for each in self._members] if (error := future.exception())]
        final = [error for error in failures if not (isinstance(error, MillpondError) and error.code.startswith("Store"))]
        if final or len(failures) == count:
            self._close()
            raise (final or failures)[0]

    def _of(self, queue: str) -> Store:
        return self._member(queue).store()

    def _member(self, queue: str) -> Member:
        return self._members[shard_of(queue, len(self._members))]

    def _one(self, jobs: Sequence[NewJob]) -> Member:
        members = {self._member(job.queue): job.queue for job in jobs}
        if len(members) > 1:
            raise self._across(*list(members.values())[:2])
        return next(iter(members), self._members[0])

    def _across(self, queue: str, other: str) -> MillpondError:
        places = f"{queue} is in {self._member(queue).name}, {other} in {self._member(other).name}"
        return MillpondError("AcrossShards", f"jobs that belong together must be in one store: {places}")

    def _answers(self, use: Callable[[Store], T], enough: Callable[[list[T]], bool] = lambda _: False) -> list[T]:
        """Of all members. Fails with the first that fails, unless the answers are enough without it."""
        away = [each.away for each in self._members]
        futures = [each.ask(use) for each in self._members]
        answers: list[T] = []
        failures = [error for error in away if error]
        left = {future for future, error in zip(futures, away, strict=True) if not error}
        late = set(futures) - left
        while left and not enough(answers):
            ready, left = wait(left, return_when=FIRST_COMPLETED)
            _sort(ready, answers, failures)
        if late and not enough(answers):
            ready, late = wait(late, PATIENCE)
            failures = [error for error in failures if late or error not in away]
            _sort(ready, answers, failures)
        if failures and not enough(answers):
            raise failures[0]
        return answers

    def _by_id(self, count: int, use: Callable[[Store], Sequence[T | None]]) -> list[T | None]:
        """One that knows an id answers for it."""
        found: list[T | None] = [None] * count

        def note(store: Store) -> None:
            for at, one in enumerate(use(store)):
                found[at] = one if found[at] is None else found[at]

        self._answers(note, lambda answers: bool(answers) and None not in found)
        return found

    def _split(
        self,
        items: Sequence[Item],
        queue_of: Callable[[Item], str],
        use: Callable[[Store, Sequence[Item]], Sequence[Out]],
        failed: Callable[[Item, MillpondError], Out] | None = None,
    ) -> list[Out]:
        """Each member answers for its items."""
        groups: dict[Member, list[int]] = {}
        for at, item in enumerate(items):
            groups.setdefault(self._member(queue_of(item)), []).append(at)
        if len(groups) <= 1:
            return list(use(next(iter(groups), self._members[0]).store(), items))
        outs: dict[int, Out] = {}
        failures = []
        own = {member: [items[at] for at in places] for member, places in groups.items()}
        futures = {member: member.ask(partial(_about, use, some)) for member, some in own.items()}
        for member, places in groups.items():
            try:
                outs |= zip(places, futures[member].result(), strict=True)
            except MillpondError as error:
                failures.append(error)
                if failed:
                    outs |= {at: failed(items[at], error) for at in places}
        if failures and (failed is None or len(failures) == len(groups)):
            raise failures[0]
        return [outs[at] for at in range(len(items))]

    def push(self, jobs: Sequence[NewJob], tx: Any = None, whole: bool = False) -> Sequence[Pushed]:
        if whole or tx is not None:
            return self._explained(jobs, self._one(jobs).store().push(jobs, tx, whole))

        def failed(job: NewJob, error: MillpondError) -> Pushed:
            return Pushed("failed", job.id, error)

        return self._explained(jobs, self._split(jobs, lambda job: job.queue, lambda store, own: store.push(own), failed))

    def _explained(self, jobs: Sequence[NewJob], outcomes: Sequence[Pushed]) -> Sequence[Pushed]:
        """A parent that its store does not know may be in another one."""
        queues = {job.id: job.queue for job in jobs} if any(each.parent for each in outcomes) else {}

        def explain(job: NewJob, outcome: Pushed) -> Pushed:
            if (parent := outcome.parent) is None:
                return outcome
            try:
                found = self._by_id(1, lambda store: store.relatives([parent], 1)) if parent not in queues else []
            except MillpondError as error:
                return Pushed("failed", outcome.id, error)
            other = queues.get(parent) or (found[0].queue if found and found[0] else job.queue)
            apart = self._member(other) is not self._member(job.queue)
            return Pushed("failed", outcome.id, self._across(job.queue, other)) if apart else outcome

        return [explain(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed:
        return self._of(queue).claim(queue, worker, limit, lease, min_priority, per_group)

    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]:
        return self._by_id(len(ids), lambda store: store.cancel(ids))

    def find(self, ids: Sequence[str]) -> Sequence[Record | None]:
        return self._by_id(len(ids), lambda store: store.find(ids))

    def outcomes(self, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
        answered = [len(ids)]

        def ask(store: Store) -> Sequence[JobOutcome | None]:
            outcomes = store.outcomes(ids)
            answered.append(len(outcomes))
            return outcomes

        found = self._by_id(len(ids), ask)
        return found[: min(answered)]

    def update(self, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
        return self._by_id(len(items), lambda store: store.update(items))

    def relatives(self, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
        return self._by_id(len(ids), lambda store: store.relatives(ids, limit))

    def entries(self, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
        return self._by_id(len(items), lambda store: store.entries(items))

    def signal(self, items: Sequence[Signal]) -> Sequence[Signalled]:
        def known(store: Store) -> Sequence[Signalled | None]:
            return [None if each.status == "none" else each for each in store.signal(items)]

        found = self._by_id(len(items), known)
        return [one or Signalled("none", item.id) for one, item in zip(found, items, strict=True)]

    def ahead(self, id: str) -> int | None:
        return self._by_id(1, lambda store: [store.ahead(id)])[0]

    def requeue(
        self, *, ids: Sequence[str] | None = None, queue: str = "", limit: int = 1000, until: int | None = None,
        forget: int | None = None,
    ) -> Requeued:  # fmt: skip
        if ids is None:
            return self._of(queue).requeue(queue=queue, limit=limit, until=until)
        answers = self._answers(
            lambda store: store.requeue(ids=ids, forget=forget),
            lambda done: sum(each.requeued for each in done) >= len(ids) > 0,
        )
        return Requeued(sum(each.requeued for each in answers), max(each.now for each in answers))

    def remove(
        self, *, ids: Sequence[str] | None = None, queue: str = "", state: State | None = None, limit: int = 1000
    ) -> Removed:
        if ids is None:
            return self._of(queue).remove(queue=queue, state=state, limit=limit)
        answers = self._answers(lambda store: store.remove(ids=ids), lambda done: sum(each.removed for each in done) >= len(ids) > 0)
        return Removed(sum(each.removed for each in answers), any(each.more for each in answers))

    def bulk(
        self, queue: str, state: State, change: BulkChange, limit: int, after: str | None = None, filter: JobFilter | None = None,
        until: int | None = None,
    ) -> BulkStep:  # fmt: skip
        return self._of(queue).bulk(queue, state, change, limit, after, filter, until)

    def list(
        self, queue: str, state: State, limit: int, after: str | None = None, filter: JobFilter | None = None
    ) -> Page:
        return self._of(queue).list(queue, state, limit, after, filter)

    def groups(self, queue: str, limit: int, after: str | None = None, group: str | None = None) -> Sequence[Group]:
        return self._of(queue).groups(queue, limit, after, group)

    def settings(self, queue: str) -> SettingsReport | None:
        return self._of(queue).settings(queue)

    def restore(self, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
        return self._split(records, lambda record: record.queue, lambda store, own: store.restore(own))

    def begin(self, queue: str = "") -> HandlerTransaction:
        return self._of(queue).begin()

    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]:
        if queue is not None:
            return self._of(queue).stats(queue, minutes)
        return [one for answer in self._answers(lambda store: store.stats(None, minutes)) for one in answer]

    def record(self, slices: Sequence[Slice]) -> None:
        def add(store: Store, own: Sequence[Slice]) -> Sequence[None]:
            store.record(own)
            return [None] * len(own)

        self._split(slices, lambda each: each.queue, add, lambda _, __: None)

    def heartbeat(self, workers: Sequence[WorkerBeat], gone: Sequence[str] = ()) -> Sequence[bool]:
        if gone:
            self._reached(lambda store: store.heartbeat([], gone))
        return self._split(
            workers, lambda worker: worker.queue, lambda store, own: store.heartbeat(own), lambda _, __: False
        )

    def _reached(self, use: Callable[[Store], T]) -> Sequence[T]:
        """Of those that can be reached."""
        answers: list[T] = []
        failures: list[MillpondError] = []
        asked = [(each.ask(use), PATIENCE if each.away else None, each.away) for each in self._members]
        for future, patience, away in asked:
            ready, _ = wait([future], patience)
            _sort(ready, answers, failures)
            if not ready and away:
                failures.append(away)
        if not answers:
            raise failures[0]
        return answers

    def workers(self, queue: str | None = None) -> Sequence[WorkerRecord]:
        if queue is not None:
            return self._of(queue).workers(queue)
        found = [one for answer in self._answers(lambda store: store.workers()) for one in answer]
        return sorted(found, key=lambda one: (one.since, one.id, one.queue))

    def sweep(self, limit: int) -> Swept:
        swept = self._reached(lambda store: store.sweep(limit))
        told = [each.schedules for each in swept if each.schedules]
        due = sorted((one for each in told for one in each.due), key=lambda one: (one.next_at or 0, one.name))
        return Swept(
            lost=[one for each in swept for one in each.lost],
            promoted=sum(each.promoted for each in swept),
            expired=sum(each.expired for each in swept),
            more=any(each.more for each in swept),
            next_due=min((each.next_due for each in swept if each.next_due is not None), default=None),
            queues=sum(each.queues for each in swept),
            schedules=DueSchedules(max(each.now for each in told), due[:MOST_DUE]) if due else None,
        )

    def declare(self, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
        outcomes = self._split(schedules, lambda each: each.job.queue, lambda store, own: store.declare(own))
        for each, outcome in zip(schedules, outcomes, strict=True):
            if outcome == "created":
                # Until now it may have been in another store, with another queue.
                others = [one for one in self._members if one is not self._member(each.job.queue)]
                wait([one.ask(partial(_removed, each.name)) for one in others])
        return outcomes

    def schedules(self, limit: int, after: str | None = None, name: str | None = None) -> Sequence[ScheduleRecord]:
        answers = self._answers(
            # One more than asked for: its mark is none.
            lambda store: store.schedules(limit + 1, after, name),
            lambda done: name is not None and any(done),
        )
        found = [one for answer in answers for one in answer if one.name != MARK]
        return sorted(found, key=lambda one: one.name)[:limit]

    def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        pushing = [each for each in firings if each.jobs]
        # Without jobs it is not known where they are.
        others = [each for each in firings if not each.jobs]

        def plan(store: Store) -> Sequence[Fired | None]:
            return [None if outcome.status == "stale" else outcome for outcome in store.fire(others)]

        fired = iter(self._split(pushing, lambda each: each.jobs[0].queue, lambda store, own: store.fire(own)))
        planned = iter(self._by_id(len(others), plan) if others else [])
        return [next(fired) if each.jobs else next(planned) or Fired("stale") for each in firings]

    def listen(self, ring: Callable[[Bell], None]) -> Callable[[], None]:
        over, stops = threading.Event(), cast("list[Callable[[], None]]", [])

        def start(member: Member) -> None:
            while not over.is_set():
                try:
                    stop = member.store().listen(ring)
                except MillpondError as error:
                    if error.code in ("Closed", "InvalidOption"):
                        return
                    over.wait(LISTEN_AGAIN_AFTER)
                else:
                    stops.append(stop)
                    return

        threads = [threading.Thread(target=start, args=(each,), daemon=True) for each in self._members]
        for thread in threads:
            thread.start()

        def end() -> None:
            over.set()
            for thread in threads:
                thread.join()
            while stops:
                stops.pop()()

        return end

    def _pause_schedule(self, name: str, paused: bool) -> bool:
        return name != MARK and any(self._answers(lambda store: store.pause_schedule(name, paused), any))

    def _remove_schedule(self, name: str) -> bool:
        return name != MARK and any(self._answers(lambda store: store.remove_schedule(name), any))

    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        return self._of(queue)._configure(queue, settings, by, clear)

    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        self._of(queue)._limit_group(queue, group, limits)

    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]:
        if op == "release":
            self._check_together(queue, list(dict.fromkeys(id for item in items if item.park for id in item.park.after)))
        return self._of(queue)._end(op, queue, items, lease)

    def _check_together(self, queue: str, ids: Sequence[str]) -> None:
        """A parked job can wait only for jobs of its own store. Error: `AcrossShards`."""
        found = self._by_id(len(ids), lambda store: store.relatives(ids, 1)) if ids else []
        for other in found:
            if other and self._member(other.queue) is not self._member(queue):
                raise self._across(queue, other.queue)

    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        raise NotImplementedError  # `listen` is that of the stores.

    def _close(self) -> None:
        for each in self._members:
            each.close()


def _about(use: Callable[[Store, Sequence[Item]], Sequence[Out]], own: Sequence[Item], store: Store) -> Sequence[Out]:
    return use(store, own)


def _removed(name: str, store: Store) -> bool:
    return store.remove_schedule(name)


def _sort(ready: Any, answers: list[T], failures: list[MillpondError]) -> None:
    for future in ready:
        try:
            answers.append(future.result())
        except MillpondError as error:
            failures.append(error)
