"""The floor above which fences are given out: claims that a power cut or a restored backup has undone had none above it.

See "Fence floor" in contract/sqlite/README.md.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from millpond.stores.sqlite.transaction import Transaction


class Fences:
    def __init__(self, path: str) -> None:
        self._path = path
        self._floor, self._schema = 0, -1

    def look(self, tx: Transaction) -> None:
        """Before `open`, without the lock."""
        self._read(tx)

    def open(self, tx: Transaction, is_new: bool, was_open: bool) -> None:
        """In a transaction that has the lock and whose commit waits for the disk."""
        before = self._floor
        # Of clients that open the file at the same time, one raises the floor: a raise since the look serves this one too.
        if self._read(tx) and (was_open or self._floor > before):
            return
        if not is_new:
            self._raise(tx)
        self.accept(tx)

    def floor(self, tx: Transaction) -> int:
        """In the transaction of a claim."""
        if tx.value("fences/schema") != self._schema and not self._read(tx):
            self._raise(tx)
            self.accept(tx)
        return self._floor

    def accept(self, tx: Transaction) -> None:
        """In a transaction that has changed the schema itself: nothing was restored."""
        tx.changes("fences/origin", origin=self._origin(tx.value("fences/schema")))
        self._read(tx)

    def _raise(self, tx: Transaction) -> None:
        tx.changes("fences/raise", now=time.time_ns() // 1_000_000)

    def _origin(self, schema: int) -> str:
        status = os.stat(self._path)
        return f"{_start_of_machine()} {status.st_dev}:{status.st_ino} {schema}"

    def _read(self, tx: Transaction) -> bool:
        """Whether the origin is still that of the last raise."""
        self._schema = tx.value("fences/schema")
        row = tx.row("fences/floor", origin=self._origin(self._schema))
        assert row is not None
        self._floor = int(row["fences"])
        return bool(row["current"])


def _start_of_machine() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(round((time.time() - time.monotonic()) * 1000 / 600_000))
