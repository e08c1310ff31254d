"""The store: every operation of contract/operations.md. Each takes a batch and answers per item, in the same order.

Any operation may fail with `StoreUnavailable`, `StoreBusy`, `StoreFull`, `StoreCorrupt`, `StoreFailed` or `Closed`.
A store may be used by several threads.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Unpack, cast

from millpond.errors import MillpondError
from millpond.jobs import (
    Bell, BulkChange, BulkStep, Claimed, Completion, ExtendOutcome, Extension, FailOutcome, Failure, Held, JobFilter, JobOutcome,
    JobUpdate, JournalItem, JournalOutcome, NewJob, Outcome, Page, Pushed, Record, Relatives, Release, ReleaseOutcome, Removed, Requeued,
    RestoreOutcome, State, Swept, UpdateOutcome, check_fields,
)
from millpond.queues import (
    Group, GroupLimits, QueueStats, Settings, SettingsReport, Slice, WorkerBeat, WorkerRecord, check_settings,
)
from millpond.schedules import Declaration, DeclareOutcome, Fired, Firing, ScheduleRecord, check_schedule
from millpond.steps import EntriesFrom, EntriesPage, Signal, Signalled

Clock = Callable[[], int]
"""The time in ms since 1970. A store has its own unless a test gives it one."""
LISTEN_AGAIN_AFTER: Final = 1.0


class HandlerTransaction(ABC):
    """A transaction for a handler's own writes. It ends with `complete`, or without effect when it is left."""

    connection: Any

    @abstractmethod
    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        """If all are `ok`, the writes and the completions are committed. Otherwise everything is rolled back."""

    def close(self) -> None:
        # What is not committed is rolled back.
        self.connection.close()

    def __enter__(self) -> HandlerTransaction:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Store(ABC):
    """A kind of store has the methods that are abstract here. Answers are sequences, since `list` is an operation."""

    _ring: Callable[[Bell], None] | None = None
    _silence: Callable[[], None] | None = None

    def configure(
        self, queue: str, *, by: Literal["code", "operator"] = "code", clear: Sequence[str] = (), **settings: Unpack[Settings]
    ) -> Sequence[str]:
        """An operator's settings are in effect until they are cleared. Names what an operator's other value keeps out of effect."""
        check_fields({"queue": queue})
        check_settings(settings)
        if by not in ("code", "operator") or isinstance(clear, str) or set(clear) - Settings.__annotations__.keys():
            raise MillpondError("InvalidOption", "`by` is code or operator, and `clear` a list of settings")
        return self._configure(queue, settings, by, clear) if settings or clear else []

    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]:
        return cast(Sequence[Outcome], self._end("complete", queue, items))

    def fail(self, queue: str, items: Sequence[Failure]) -> Sequence[FailOutcome]:
        return cast(Sequence[FailOutcome], self._end("fail", queue, items))

    def release(self, queue: str, items: Sequence[Release]) -> Sequence[ReleaseOutcome]:
        return cast(Sequence[ReleaseOutcome], self._end("release", queue, items))

    def extend(self, queue: str, items: Sequence[Extension], lease: int | None = None) -> Sequence[ExtendOutcome]:
        return cast(Sequence[ExtendOutcome], self._end("extend", queue, items, lease))

    def journal(self, queue: str, items: Sequence[JournalItem]) -> Sequence[JournalOutcome]:
        """Adds entries to the journals of claimed jobs. Those whose names are there already are left out."""
        return cast(Sequence[JournalOutcome], self._end("journal", queue, items))

    def entries(self, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
        """About 4 MiB of entries; None: the job is unknown. Error: `NotSupported`."""
        raise MillpondError("NotSupported", "this store keeps no steps")

    def signal(self, items: Sequence[Signal]) -> Sequence[Signalled]:
        """Adds entries from outside to the journals of live jobs; parked ones that are scheduled wait then. Error: `NotSupported`."""
        raise MillpondError("NotSupported", "this store keeps no steps")

    def limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        """`group` '': the jobs without one. Makes the queue grouped. Error: `NotSupported`."""
        check_fields({"queue": queue, "group": group or None})
        self._limit_group(queue, group, limits)

    def listen(self, ring: Callable[[Bell], None]) -> Callable[[], None]:
        """Calls `ring` in a thread of its own, until the function that it returns is called. Bells are hints only."""
        if self._silence:
            raise MillpondError("InvalidOption", "this store listens already")
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                try:
                    for bell in self._bells(over):
                        ring(bell)
                except MillpondError:
                    over.wait(LISTEN_AGAIN_AFTER)

        def stop() -> None:
            self._ring = self._silence = None
            over.set()
            if threading.current_thread() is not thread:
                thread.join()

        thread = threading.Thread(target=run, name="millpond-bells", daemon=True)
        self._ring, self._silence = ring, stop
        thread.start()
        return stop

    def close(self) -> None:
        if self._silence:
            self._silence()
        self._close()

    @abstractmethod
    def push(self, jobs: Sequence[NewJob], tx: Any = None, whole: bool = False) -> Sequence[Pushed]:
        """`tx`: the caller's own connection, in a transaction on this database. `whole`: all of the jobs or none.
        Error: `TransactionMismatch`."""

    @abstractmethod
    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None = None, min_priority: int = 0, per_group: int = 1
    ) -> Claimed: ...

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]: ...

    @abstractmethod
    def sweep(self, limit: int) -> Swept: ...

    @abstractmethod
    def find(self, ids: Sequence[str]) -> Sequence[Record | None]: ...

    @abstractmethod
    def outcomes(self, ids: Sequence[str]) -> Sequence[JobOutcome | None]:
        """What has become of jobs, without their data. Where results are large, the answer is for the first ids alone."""

    @abstractmethod
    def ahead(self, id: str) -> int | None: ...

    @abstractmethod
    def relatives(self, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
        """Which jobs wait, or waited, for which; of each at most `limit` parents and `limit` children."""

    @abstractmethod
    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]: ...

    @abstractmethod
    def record(self, slices: Sequence[Slice]) -> None: ...

    @abstractmethod
    def list(
        self, queue: str, state: State, limit: int, after: str | None = None, filter: JobFilter | None = None
    ) -> Page:
        """`after`: the cursor of a job, or `next` of the page before."""

    @abstractmethod
    def groups(
        self, queue: str, limit: int, after: str | None = None, group: str | None = None
    ) -> Sequence[Group]: ...

    @abstractmethod
    def update(self, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
        """Changes blocked, scheduled and waiting jobs."""

    @abstractmethod
    def requeue(
        self, *, ids: Sequence[str] | None = None, queue: str = "", limit: int = 1000, until: int | None = None,
        forget: int | None = None,
    ) -> Requeued:  # fmt: skip
        """Sends dead or cancelled jobs back to waiting: `ids`, or a queue's dead ones, longest dead first; with `until` those that
        were dead at that time. `forget`, with `ids`: entries of the worker with this number or a higher one are gone."""

    @abstractmethod
    def remove(
        self, *, ids: Sequence[str] | None = None, queue: str = "", state: State | None = None, limit: int = 1000
    ) -> Removed:
        """Removes jobs: `ids`, or those of a queue and state; without a state a whole queue, step by step."""

    @abstractmethod
    def bulk(
        self, queue: str, state: State, change: BulkChange, limit: int, after: str | None = None, filter: JobFilter | None = None,
        until: int | None = None,
    ) -> BulkStep:  # fmt: skip
        """Changes jobs of a state that pass a filter, at most `limit`; 0: only counts. `after`: `next` of the step before; `until`:
        only those that were in the state at this time."""

    @abstractmethod
    def restore(self, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
        """Puts jobs back as they were. None may be running."""

    @abstractmethod
    def begin(self) -> HandlerTransaction:
        """Error: `NotSupported`."""

    @abstractmethod
    def settings(self, queue: str) -> SettingsReport | None:
        """All settings, and who gave them; None: the store does not know the queue."""

    @abstractmethod
    def heartbeat(self, workers: Sequence[WorkerBeat], gone: Sequence[str] = ()) -> Sequence[bool]:
        """These workers claim now, and those are gone. Call it every 15 s. Whether the store knows each worker's queue."""

    @abstractmethod
    def workers(self, queue: str | None = None) -> Sequence[WorkerRecord]:
        """Those that were heard of in the last minute."""

    @abstractmethod
    def declare(self, schedules: Sequence[Declaration]) -> Sequence[DeclareOutcome]:
        """A program declares its schedules when it starts, and every 30 s with `again`."""

    @abstractmethod
    def schedules(self, limit: int, after: str | None = None, name: str | None = None) -> Sequence[ScheduleRecord]:
        """By name: those after `after`, or the one named."""

    def pause_schedule(self, name: str, paused: bool) -> bool:
        """Whether there is such a schedule."""
        return self._pause_schedule(check_schedule(name), paused)

    def remove_schedule(self, name: str) -> bool:
        """Whether there was such a schedule. Its jobs stay."""
        return self._remove_schedule(check_schedule(name))

    @abstractmethod
    def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        """Moves schedules on from the time that is due, and pushes the jobs of that time. Of all that ask, one is heard."""

    @abstractmethod
    def _pause_schedule(self, name: str, paused: bool) -> bool: ...

    @abstractmethod
    def _remove_schedule(self, name: str) -> bool: ...

    @abstractmethod
    def _configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]: ...

    @abstractmethod
    def _limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None: ...

    @abstractmethod
    def _end(self, op: str, queue: str, items: Sequence[Any], lease: int | None = None) -> Sequence[str]: ...

    @abstractmethod
    def _bells(self, over: threading.Event) -> Iterator[Bell]:
        """Rings until it is over. Errors: those of the contract, after which it is called again."""

    @abstractmethod
    def _close(self) -> None: ...
