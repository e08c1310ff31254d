"""A connection to the database file: opening, migrating, waiting for locks. See contract/sqlite/README.md."""

from __future__ import annotations

import os
import random
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from millpond.contract import migrations, statements
from millpond.errors import MillpondError

T = TypeVar("T")

BUSY_TIMEOUT = 5.0
STATEMENTS: Final = statements("sqlite")
PRAGMAS: Final = (
    "busy_timeout = 0", "synchronous = full", "cache_size = -16384", "temp_store = memory",
    "wal_autocheckpoint = 4000", "journal_size_limit = 33554432",
)  # fmt: skip
_CODES: Final = {
    sqlite3.SQLITE_BUSY: "StoreBusy", sqlite3.SQLITE_LOCKED: "StoreBusy", sqlite3.SQLITE_FULL: "StoreFull",
    **dict.fromkeys((778, 1546, 4874), "StoreFull"), 8458: "StoreCorrupt",
    **dict.fromkeys((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB), "StoreCorrupt"),
    **dict.fromkeys((sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN), "StoreUnavailable"),
}  # fmt: skip


def patient(action: Callable[[], T]) -> T:
    """Repeats what meets a lock. SQLite's own waiting grows to 100 ms and starves beside a steady writer."""
    end, wait = time.monotonic() + BUSY_TIMEOUT, 0.00005
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > end:
                raise
        time.sleep(wait * random.uniform(0.5, 1.5))
        wait = min(wait * 1.2, 0.001)


def is_busy(error: sqlite3.OperationalError) -> bool:
    return (error.sqlite_errorcode or 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def coded() -> Iterator[None]:
    """Errors of SQLite become those of the contract."""
    try:
        yield
    except sqlite3.Error as error:
        extended: int = getattr(error, "sqlite_errorcode", None) or 0
        code = _CODES.get(extended) or _CODES.get(extended & 0xFF, "StoreFailed")
        raise MillpondError(code, str(error)) from error


def connect(path: str) -> sqlite3.Connection:
    """A connection that begins no transaction by itself."""
    _create_private(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        mode = patient(lambda: connection.execute("pragma journal_mode = wal").fetchone()[0])
        if mode != "wal":
            raise MillpondError("StoreUnavailable", f"{path} cannot have a write-ahead log; its journal mode is {mode}")
        for pragma in PRAGMAS:
            patient(lambda: connection.execute(f"pragma {pragma}").fetchall())
    except BaseException:
        connection.close()
        raise
    return connection


def _create_private(path: str) -> None:
    """Under another name: a process that closes a file which it has open in SQLite drops SQLite's locks on it."""
    if os.path.exists(path):
        return
    new = f"{path}.{secrets.token_hex(8)}"
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.link(new, path)
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        raise MillpondError("StoreUnavailable", f"{path} cannot be created: {error}") from error
    finally:
        Path(new).unlink(missing_ok=True)


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "begin immediate") -> Iterator[None]:
    """A transaction that is committed, or rolled back if anything fails."""
    patient(lambda: connection.execute(begin))
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("rollback")
        raise


def migrate(connection: sqlite3.Connection) -> None:
    todo = migrations("sqlite")
    if _version(connection, len(todo)) == len(todo):
        return
    with transaction(connection):
        version = _version(connection, len(todo))
        connection.execute(
            "create table if not exists millpond_meta (key text primary key, value any) strict, without rowid"
        )
        for text in todo[version:]:
            # `executescript` would commit first.
            statement = ""
            for part in text.split(";")[:-1]:
                statement += part + ";"
                if sqlite3.complete_statement(statement):
                    connection.execute(statement)
                    statement = ""
        sql = "insert into millpond_meta (key, value) values (?, ?) on conflict do update set value = excluded.value"
        connection.execute(sql, ("version", len(todo)))


def _version(connection: sqlite3.Connection, known: int) -> int:
    def read() -> int:
        there = connection.execute("select 1 from sqlite_master where name = 'millpond_meta'").fetchone()
        sql = "select value from millpond_meta where key = 'version'"
        row = connection.execute(sql).fetchone() if there else None
        return int(row[0]) if row else 0

    version = patient(read)
    if version > known:
        raise MillpondError("StoreVersion", f"the file's version is {version}; this library knows up to {known}")
    return version


def fence_floor(connection: sqlite3.Connection) -> int:
    """Fences are given out above it: a power cut may have undone claims, since they do not wait for the disk."""
    boot = {"boot": _start_of_machine()}

    def read() -> Any:
        return patient(lambda: connection.execute(STATEMENTS["fences/floor"], boot).fetchone())

    if not read()[0]:
        with transaction(connection):
            connection.execute(STATEMENTS["fences/raise"], boot)
            connection.execute(STATEMENTS["fences/boot"], boot)
    return int(read()[1])


def _start_of_machine() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(round((time.time() - time.monotonic()) * 1000 / 600_000))
