"""Bells of SQLite: it announces no commits, so a connection of its own looks every 10 ms whether anything changed.

That connection sees the commits of this process like all others, so nothing has to ring for them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

from millpond.jobs import Bell
from millpond.stores.bells import BellThread
from millpond.stores.sqlite.connection import connect
from millpond.stores.sqlite.transaction import Reader

EVERY = 0.010
_NUMBERS = ("ready_total", "finished_total", "cancelled_total", "waiting", "scheduled")
_Seen = dict[str, dict[str, int | None]]


class Bells(BellThread):
    def __init__(self, path: str, ring: Callable[[Bell], None]) -> None:
        super().__init__(ring)
        self._path = path

    def run(self) -> None:
        seen: _Seen = {}
        version = None
        connection = connect(self._path)
        try:
            while not self.over.wait(EVERY):
                try:
                    now_at = connection.execute("pragma data_version").fetchone()[0]
                    if now_at != version:
                        rows = Reader(connection, 0).rows("counts/watch")
                        version, found = now_at, {row["name"]: dict(row) for row in rows}
                        for bell in _differences(seen, found):
                            self.ring(bell)
                        seen = found
                except sqlite3.OperationalError:
                    continue  # locked for a moment: look again
        finally:
            connection.close()


def _differences(seen: _Seen, found: _Seen) -> Iterator[Bell]:
    for queue, now in found.items():
        was = seen.get(queue) or {**dict.fromkeys(_NUMBERS, 0), "paused": 0, "capacity": None}
        changed = {name for name in now if now[name] != was.get(name)}
        if now["waiting"] and ("ready_total" in changed or (was["paused"] and not now["paused"])):
            yield Bell("work", queue)
        if "finished_total" in changed:
            yield Bell("finished", queue)
        if "cancelled_total" in changed:
            yield Bell("cancelled", queue)
        capacity, held = now["capacity"], (now["waiting"] or 0) + (now["scheduled"] or 0)
        bounded = capacity is not None or was["capacity"] is not None
        moved = changed & {"capacity", "ready_total"} or held != (was["waiting"] or 0) + (was["scheduled"] or 0)
        if bounded and moved and (capacity is None or held < capacity):
            yield Bell("room", queue)
