"""What the operations of a transaction share: statements, queues read once, counts written before the commit."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from millpond.backoff import Backoff
from millpond.contract import statements
from millpond.jobs import STATES, State

STATEMENTS: Final = statements("sqlite")
FinalState = Literal["done", "dead", "cancelled"]
COUNTS: Final = (*STATES, "ready_total", "finished_total", "cancelled_total")
"""Columns of a queue's row that operations add to."""


@dataclass(slots=True)
class Queue:
    name: str
    keep_done: int
    keep_dead: int
    paused: bool
    attempts: int
    timeout: int | None
    lease: int
    room: float
    """How many more scheduled and waiting jobs fit; infinite without a capacity."""
    limited: bool
    """Whether it has limits, takes turns, or was paused by a release. This client keeps no limits on SQLite."""

    def keeps(self, state: FinalState) -> bool:
        return (self.keep_done if state == "done" else self.keep_dead) > 0


class Reader:
    """Statements of the contract by FILE/NAME, on any connection to the file."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        # A caller's connection may have row and text factories of its own.
        self.cursor = connection.cursor()
        self.cursor.row_factory = sqlite3.Row
        self.now = now

    def rows(self, name: str, **parameters: object) -> list[sqlite3.Row]:
        return self.cursor.execute(STATEMENTS[name], {"now": self.now, **parameters}).fetchall()

    def row(self, name: str, **parameters: object) -> sqlite3.Row | None:
        return next(iter(self.rows(name, **parameters)), None)

    def read_queue(self, name: str) -> Queue | None:
        row = self.row("counts/queue", queue=name)
        if row is None:
            return None
        room = float("inf") if row["capacity"] is None else row["capacity"] - row["scheduled"] - row["waiting"]
        keep = (row["keep_done"], row["keep_dead"])
        return Queue(name, *keep, row["paused"] == 1, row["attempts"], row["timeout"], row["lease"], room, row["limits"] is not None)


class Transaction(Reader):
    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        super().__init__(connection, now)
        self._queues: dict[str, Queue] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def changes(self, name: str, **parameters: object) -> int:
        return self.cursor.execute(STATEMENTS[name], {"now": self.now, **parameters}).rowcount

    def queue(self, name: str) -> Queue | None:
        if name not in self._queues and (found := self.read_queue(name)):
            self._queues[name] = found
        return self._queues.get(name)

    def made_queue(self, name: str) -> Queue:
        if self.queue(name) is None:
            self.changes("counts/create", queue=name)
        queue = self.queue(name)
        assert queue is not None
        return queue

    def forget_queue(self, name: str) -> None:
        """It was changed or removed: read it again at its next use."""
        self._queues.pop(name, None)

    def move(self, queue: str, was: State | None, becomes: State | None, count: int = 1) -> None:
        for state, change in ((was, -count), (becomes, count)):
            if state is not None:
                self._counts[queue, state] += change
            if state in ("scheduled", "waiting") and queue in self._queues:
                self._queues[queue].room -= change
        if becomes == "waiting":
            self._counts[queue, "ready_total"] += count

    def finish(self, queue: Queue, was: State, becomes: FinalState) -> None:
        """The job's row is to be kept if `queue.keeps(becomes)`, else removed."""
        self.move(queue.name, was, becomes if queue.keeps(becomes) else None)
        self._counts[queue.name, "finished_total"] += 1
        if was == "running" and becomes == "cancelled":
            self._counts[queue.name, "cancelled_total"] += 1

    def write_counts(self) -> None:
        counts, self._counts = self._counts, Counter()
        for queue in {queue for (queue, _), change in counts.items() if change != 0}:
            self.changes("counts/add", queue=queue, **{column: counts[queue, column] for column in COUNTS})


def backoff_of_row(row: sqlite3.Row) -> Backoff:
    return Backoff(row["backoff_base"], row["backoff_factor"], row["backoff_max"], row["backoff_jitter"])
