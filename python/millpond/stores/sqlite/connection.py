"""A connection to the database file: opening, migrating, waiting for locks. See contract/sqlite/README.md."""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from millpond.contract import migrations, statements
from millpond.errors import MillpondError
from millpond.stores.sqlite.guard import remove_drafts

T = TypeVar("T")

BUSY_TIMEOUT = 5.0
STATEMENTS: Final = statements("sqlite")
PRAGMAS: Final = (
    "busy_timeout = 0", "synchronous = full", "cache_size = -16384", "temp_store = memory",
)  # fmt: skip
_CODES: Final = {
    sqlite3.SQLITE_BUSY: "StoreBusy", sqlite3.SQLITE_LOCKED: "StoreBusy", sqlite3.SQLITE_FULL: "StoreFull",
    **dict.fromkeys((778, 1546, 4874), "StoreFull"), 8458: "StoreCorrupt",
    **dict.fromkeys((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB), "StoreCorrupt"),
    **dict.fromkeys((sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN), "StoreUnavailable"),
    sqlite3.SQLITE_TOOBIG: "PayloadTooLarge", sqlite3.SQLITE_CONSTRAINT_CHECK: "PayloadTooLarge",
    sqlite3.SQLITE_CONSTRAINT_TRIGGER: "StoreRefused",
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
        if re.search(r"no such (table|view|index): (main\.)?millpond_", str(error)):
            raise _incomplete() from error
        raise MillpondError(code, str(error)) from error


def connect(path: str) -> sqlite3.Connection:
    """A connection that begins no transaction by itself."""
    _create_private(path)
    remove_drafts(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        mode = patient(lambda: connection.execute("pragma journal_mode = wal").fetchone()[0])
        if mode != "wal":
            raise MillpondError("StoreUnavailable", f"{path} cannot have a write-ahead log; its journal mode is {mode}")
        for pragma in (*PRAGMAS, *_log_limits(connection, path)):
            patient(lambda: connection.execute(f"pragma {pragma}").fetchall())
    except BaseException:
        connection.close()
        raise
    return connection


def _log_limits(connection: sqlite3.Connection, path: str) -> tuple[str, str]:
    """At most a quarter of the free space: a log that fills the disk could not be brought into the database any more."""
    size: int = connection.execute("pragma page_size").fetchone()[0]
    pages = max(32, min(4000, shutil.disk_usage(os.path.dirname(os.path.realpath(path))).free // 4 // size))
    return f"wal_autocheckpoint = {pages}", f"journal_size_limit = {min(32 << 20, 2 * pages * size)}"


def make_room(connection: sqlite3.Connection) -> None:
    """On a full disk: brings the log into the database and gives its space back, for the next call."""
    with suppress(sqlite3.Error):
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()


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
    except BaseException as error:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("rollback")
        if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            make_room(connection)
        raise


def migrate(connection: sqlite3.Connection) -> bool:
    """Whether the tables were made. Those that another program has emptied, or copied without their rows, get their version again."""
    todo, is_new = migrations("sqlite"), False
    if _version(connection, len(todo)) == len(todo):
        if len(_schema(connection)) < len(_schema_wanted()):
            raise _incomplete()
        return False
    with transaction(connection):
        version, found = _version(connection, len(todo)), _schema(connection)
        connection.execute(
            "create table if not exists millpond_meta (key text primary key, value any) strict, without rowid"
        )
        if version == 0 and found.keys() - {"millpond_meta"}:
            if not _schema_wanted().items() <= found.items():
                raise _incomplete()
        else:
            is_new = version == 0
            for text in todo[version:]:
                _run(connection, text)
        sql = "insert into millpond_meta (key, value) values (?, ?) on conflict do update set value = excluded.value"
        connection.execute(sql, ("version", len(todo)))
    return is_new


def _run(connection: sqlite3.Connection, script: str) -> None:
    """`executescript` would commit first."""
    statement = ""
    for part in script.split(";")[:-1]:
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(connection.execute("select name, sql from sqlite_master where name glob 'millpond_*'").fetchall())


def _schema_wanted() -> dict[str, str]:
    """As a new file has it."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for text in migrations("sqlite"):
            _run(connection, text)
        return _schema(connection)
    finally:
        connection.close()


def _incomplete() -> MillpondError:
    message = "tables of Millpond are missing or are others: restore a backup, or drop all that begin with millpond_ to begin anew"
    return MillpondError("StoreCorrupt", message)


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
