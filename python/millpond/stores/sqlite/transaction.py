"""What the operations of a transaction share: statements, queues read once, counts written before the commit."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from millpond.contract import DEFAULTS
from millpond.encoding import Body
from millpond.jobs import LIVE, State
from millpond.stores.sqlite.connection import STATEMENTS

NO_QUEUE_LEASE: Final = DEFAULTS["queue"]["lease"]
SOON: Final = DEFAULTS["store"]["soon"]
"""Ms. A job that is due sooner rings for work when it is scheduled: a claim then tells when."""


class Queue:
    """What counts/queue tells: settings, room for blocked, scheduled and waiting jobs, limits."""

    def __init__(self, name: str, row: sqlite3.Row) -> None:
        self.name, self.row = name, row
        self.room: float = float("inf") if row["room"] is None else row["room"]
        self.uses_once = row["once"] == 1
        self.uses_graphs = row["graphs"] == 1
        self.keep = {"done": row["keep_done"], "dead": row["keep_dead"], "cancelled": row["keep_dead"]}
        self.grouped: bool = row["grouped"] == 1


class Transaction:
    """Statements of the contract by FILE/NAME, on any connection to the file."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        # A caller's connection may have row and text factories of its own.
        self.cursor = connection.cursor()
        self.cursor.row_factory = sqlite3.Row
        self.now = now
        self._queues: dict[str, Queue] = {}
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def rows(self, name: str, /, **parameters: Any) -> list[sqlite3.Row]:
        return self.cursor.execute(STATEMENTS[name], {"now": self.now, **parameters}).fetchall()

    def row(self, name: str, /, **parameters: Any) -> sqlite3.Row | None:
        return next(iter(self.rows(name, **parameters)), None)

    def value(self, name: str, /, **parameters: Any) -> Any:
        """The first column of the first row."""
        row = self.row(name, **parameters)
        return None if row is None else row[0]

    def changes(self, name: str, /, **parameters: Any) -> int:
        return self.cursor.execute(STATEMENTS[name], {"now": self.now, **parameters}).rowcount

    def queue(self, name: str) -> Queue | None:
        if name not in self._queues and (row := self.row("counts/queue", queue=name)):
            self._queues[name] = Queue(name, row)
        return self._queues.get(name)

    def line_up(self, queue: str) -> None:
        """Waiting jobs of a grouped queue that are in no line yet come into their groups' lines, up to 1,000 of them."""
        if self.made_queue(queue).grouped:
            for name in ("line_up_groups", "line_up"):
                self.changes(f"limits/{name}", queue=queue)

    def made_queue(self, name: str) -> Queue:
        if self.queue(name) is None:
            self.changes("counts/create", queue=name)
        queue = self.queue(name)
        assert queue is not None
        return queue

    def lease(self, queue: str, lease: int | None) -> int:
        known = self.queue(queue)
        return lease or (known.row["lease"] if known else NO_QUEUE_LEASE)

    def reread(self) -> None:
        """Writes the counts. Queues are changed or removed: they are read again at their next use."""
        self.write_counts()
        self._queues.clear()

    def forget(self) -> None:
        """What was not written is void, as after a rollback to a savepoint."""
        self._counts.clear()
        self._queues.clear()

    def move(self, queue: str, was: State | None, becomes: State | None, count: int = 1, due_in: float = SOON) -> None:
        """`due_in`: of scheduled jobs, in ms."""
        for state, change in ((was, -count), (becomes, count)):
            if state is not None:
                self.count(queue, "state", state, change)
            if state in ("blocked", "scheduled", "waiting") and queue in self._queues:
                self._queues[queue].room -= change
        if becomes == "waiting" or self._lets_another_start(queue, was, becomes):
            self.count(queue, "sign", "ready", count)
        elif becomes == "scheduled" and due_in < SOON:
            self.count(queue, "sign", "soon", count)

    def _lets_another_start(self, queue: str, was: State | None, becomes: State | None) -> bool:
        known = self.queue(queue)
        if known is None or not (known.row["limited"] or known.grouped):
            return False
        return becomes != "running" if was == "waiting" else was == "running" and becomes in ("scheduled", "blocked")

    def finish(self, queue: Queue, was: State, becomes: State) -> bool:
        """Whether the job's row is to be kept; else it is to be removed."""
        kept: bool = queue.keep[becomes] > 0
        self.move(queue.name, was, becomes if kept else None)
        self.count(queue.name, "total", becomes)
        self._ended(queue.name, was == "running" and becomes == "cancelled")
        return kept

    def remove(self, queue: str, was: State) -> None:
        self.move(queue, was, None)
        if was in LIVE:
            self._ended(queue, was == "running")

    def count(self, queue: str, kind: str, name: str, by: int = 1) -> None:
        """See the table millpond_counts."""
        self._counts[queue, kind, name] += by

    def _ended(self, queue: str, was_stopped: bool) -> None:
        self.count(queue, "sign", "finished")
        if was_stopped:
            self.count(queue, "sign", "stopped")

    def write_counts(self) -> None:
        counts, self._counts = self._counts, Counter()
        for queue in {queue for queue, _, _ in counts}:
            changed = [(kind, name, by) for (of, kind, name), by in counts.items() if of == queue]
            self.changes("counts/add", queue=queue, counts=json.dumps(changed))


@contextmanager
def savepoint(tx: Transaction) -> Iterator[Callable[[], None]]:
    """What is done is undone if it fails, or by what this gives."""
    tx.reread()
    tx.changes("savepoint/begin")

    def undo() -> None:
        tx.forget()
        tx.changes("savepoint/undo")

    try:
        yield undo
        tx.reread()
    except BaseException:
        # Where SQLite has rolled back everything by itself, there is nothing left to undo.
        if tx.cursor.connection.in_transaction:
            undo()
            tx.changes("savepoint/end")
        raise
    tx.changes("savepoint/end")


def body(row: sqlite3.Row, encoding: str, name: str) -> Any:
    return None if row[encoding] is None else Body(row[encoding], row[name])


def encoded(body: Body | None, name: str) -> dict[str, Any]:
    return {"encoding": body and body.encoding, name: body and body.body}
