"""The store: every operation of contract/operations.md. Each takes a batch and answers per item, in the same order.

Any operation may fail with `StoreUnavailable`, `StoreBusy`, `StoreFull`, `StoreCorrupt`, `StoreFailed` or `Closed`.
A store may be used by several threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from millpond.jobs import (
    Bell, Claimed, Completion, ExtendOutcome, Extension, Failure, FailOutcome, Held, NewJob, Outcome, Pushed,
    QueueStats, Record, Settings, Slice, State, Swept,
)

Clock = Callable[[], int]
"""The time in ms since 1970. A store has its own unless a test gives it one."""


class HandlerTransaction(ABC):
    """A transaction for a handler's own writes. It ends with `complete`, or without effect when it is left."""

    connection: Any

    @abstractmethod
    def complete(self, queue: str, item: Completion) -> Outcome:
        """`ok`: the writes and the completion are committed. `stale`: everything is rolled back."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> HandlerTransaction:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Store(ABC):
    # Answers are sequences, since `list` is an operation here.

    @abstractmethod
    def configure(self, queue: str, **settings: Unpack[Settings]) -> None: ...

    @abstractmethod
    def push(self, jobs: Sequence[NewJob], tx: Any = None) -> Sequence[Pushed]:
        """`tx`: the caller's own connection, in a transaction on this database. Error: `TransactionMismatch`."""

    @abstractmethod
    def claim(self, queue: str, worker: str, limit: int, lease: int | None = None) -> Claimed: ...

    @abstractmethod
    def complete(self, queue: str, items: Sequence[Completion]) -> Sequence[Outcome]: ...

    @abstractmethod
    def fail(self, queue: str, items: Sequence[Failure]) -> Sequence[FailOutcome]: ...

    @abstractmethod
    def release(self, queue: str, items: Sequence[Held]) -> Sequence[Outcome]: ...

    @abstractmethod
    def extend(self, queue: str, items: Sequence[Extension], lease: int | None = None) -> Sequence[ExtendOutcome]: ...

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> Sequence[State | None]: ...

    @abstractmethod
    def sweep(self, limit: int) -> Swept: ...

    @abstractmethod
    def find(self, ids: Sequence[str]) -> Sequence[Record | None]: ...

    @abstractmethod
    def stats(self, queue: str | None = None, minutes: int = 0) -> Sequence[QueueStats]: ...

    @abstractmethod
    def record(self, slices: Sequence[Slice]) -> None: ...

    @abstractmethod
    def list(self, queue: str, state: State, limit: int, after: str | None = None) -> Sequence[Record]: ...

    @abstractmethod
    def requeue_ids(self, ids: Sequence[str]) -> int:
        """How many dead or cancelled jobs wait again."""

    @abstractmethod
    def requeue_queue(self, queue: str, limit: int) -> int:
        """The same for a queue's dead jobs, longest dead first."""

    @abstractmethod
    def listen(self, ring: Callable[[Bell], None]) -> Callable[[], None]:
        """Calls `ring` in a thread of its own, until the function that it returns is called. Bells are hints only."""

    @abstractmethod
    def begin(self) -> HandlerTransaction:
        """Error: `NotSupported`."""

    @abstractmethod
    def close(self) -> None: ...
