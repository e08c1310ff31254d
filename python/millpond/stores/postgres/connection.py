"""A connection to the server, and how its errors are told. See "Every call" in contract/postgres/README.md.

Every call is one message of the simple protocol that begins with its own settings. So nothing is left in the session,
and the store works behind a pooler.

The application may register adapters for the whole process, or for its connections. The store's own connections have
those of psycopg alone, and on a caller's connection the store's statements carry their values and answer with one text.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.postgres import register_default_adapters
from psycopg.rows import tuple_row
from psycopg.sql import Literal
from psycopg.types.array import register_all_arrays

from millpond.errors import CODES, LostAnswer, MillpondError

TIMEOUT: Final = 20_000
"""ms after which a server that does not answer is given up."""
TRIES_AFTER_CONFLICT: Final = 5
Rows: TypeAlias = list[tuple[Any, ...]]
Connected: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

# The server must give a call up before the client does.
_BEFORE: Final = (
    f"set transaction isolation level read committed, read write; set local statement_timeout = {TIMEOUT * 3 // 4}; "
)
_BY_STATE: Final = {
    "22P05": "PayloadNotEncodable",
    "22023": "InvalidOption", "23514": "InvalidOption", "MP001": "NotSupported", "55P03": "StoreBusy",
    "MP002": "PayloadTooLarge", "MP003": "PayloadNotEncodable", "MP004": "StoreBusy",
    "57014": "StoreBusy", "53100": "StoreFull", "XX001": "StoreCorrupt", "XX002": "StoreCorrupt",
    "23505": "StoreFailed", "54001": "StoreFailed",
    **dict.fromkeys(("40003", "25006", "0A000", "55000", "3D000", "3F000", "42501", "42883"), "StoreUnavailable"),
}  # fmt: skip
_BY_CLASS: Final = {
    "40": "StoreBusy",
    **dict.fromkeys(("08", "28", "53", "57"), "StoreUnavailable"),
    **dict.fromkeys(("22", "23", "44", "54", "P0"), "StoreRefused"),
}


class _Json(Loader):
    """`psycopg.types.json.set_json_loads` changes psycopg's own for the whole process."""

    def load(self, data: Buffer) -> Any:
        return json.loads(bytes(data))


_ADAPTERS: Final = AdaptersMap(types=psycopg.adapters.types)
register_default_adapters(_ADAPTERS)
register_all_arrays(_ADAPTERS)
_ADAPTERS.register_loader("json", _Json)


def connect(url: str, *, own: bool = True) -> Connected:
    """`own`: for the store's statements alone. Otherwise the application's adapters apply."""
    # Statements are bound by the client: the simple protocol takes several at once.
    try:
        return psycopg.connect(
            url, autocommit=True, cursor_factory=psycopg.ClientCursor, row_factory=tuple_row,
            connect_timeout=10, tcp_user_timeout=TIMEOUT, context=_ADAPTERS if own else None, client_encoding="utf8",
        )  # fmt: skip
    except psycopg.ProgrammingError:
        # Its message has a part of the URL, perhaps of the password.
        raise MillpondError("InvalidOption", "the URL cannot be read: percent-encode what is special in user and password") from None


def run(connection: psycopg.Connection[Any], sql: str, parameters: Sequence[object] = ()) -> Rows:
    """The rows of the last statement."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(sql, parameters or None)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []


def ask(connection: psycopg.Connection[Any], sql: str, parameters: Sequence[object] = ()) -> Any:
    """A statement of the store on a connection of the application. Answers with its one value, which is JSON."""
    first, *rest = sql.split("%s")
    statement = first + "".join(
        Literal(value).as_string(_ADAPTERS) + text for value, text in zip(parameters, rest, strict=True)
    )
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute(statement.encode(connection.info.encoding), prepare=False)
        found = cursor.pgresult and cursor.pgresult.ntuples and cursor.pgresult.get_value(0, 0)
    return json.loads(found) if found else None


@contextmanager
def coded() -> Iterator[None]:
    """Errors of the server become those of the contract."""
    try:
        yield
    except psycopg.Error as error:
        raise _coded(error) from _cause(error)


def _coded(error: psycopg.Error) -> MillpondError:
    return MillpondError(*_told(error))


def _cause(error: psycopg.Error) -> psycopg.Error | None:
    """The server's details and context have values, such as the row that broke a constraint."""
    return None if error.sqlstate else error


def _told(error: psycopg.Error) -> tuple[str, str]:
    state = error.sqlstate
    if state is None:
        return "StoreUnavailable" if isinstance(error, psycopg.OperationalError) else "StoreFailed", str(error).strip()
    message = error.diag.message_primary or type(error).__name__
    named, _, rest = message.partition(": ")
    if state in ("22023", "23514") and named in CODES:
        return named, rest
    if state[:2] == "22":
        # Data exceptions quote the value.
        message = re.sub('".*"', '"…"', message, flags=re.DOTALL)
    if state == "23514" and error.diag.constraint_name in ("payload_too_large", "result_too_large"):
        return "PayloadTooLarge", message
    return _BY_STATE.get(state) or _BY_CLASS.get(state[:2], "StoreFailed"), message


class Connection:
    """The store's own connection; connected anew when it ended."""

    def __init__(self, url: str) -> None:
        self.lock, self.closed = threading.RLock(), False
        self._url, self._connected = url, connect(url)

    def call(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Runs a statement in a transaction of its own. Error: `LostAnswer`, if it may have taken effect."""
        for left in reversed(range(TRIES_AFTER_CONFLICT)):
            try:
                return self._call(sql, parameters)
            except psycopg.errors.StatementCompletionUnknown as error:
                raise LostAnswer(*_told(error)) from None
            except psycopg.Error as error:
                if left == 0 or (error.sqlstate or "")[:2] != "40":
                    raise _coded(error) from _cause(error)
        raise AssertionError

    def _call(self, sql: str, parameters: Sequence[object]) -> Rows:
        with self.lock:
            connection = self.open()
            try:
                return run(connection, _BEFORE + sql, parameters)
            except psycopg.OperationalError as error:
                if connection.closed:
                    raise LostAnswer("StoreUnavailable", str(error).strip()) from error
                raise

    def open(self) -> Connected:
        if self.closed:
            raise MillpondError("Closed", "the store is closed")
        if self._connected.closed:
            self._connected = connect(self._url)
        return self._connected

    def close(self) -> None:
        with self.lock:
            self.closed = True
            self._connected.close()
