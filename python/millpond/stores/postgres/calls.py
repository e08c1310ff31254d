"""Calls of the contract's functions, and who waits for what."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from millpond.jobs import BellKind
from millpond.store import Clock
from millpond.stores.postgres.connection import Connection, coded
from millpond.stores.postgres.install import Schema

_TYPES: Final = {
    "ids": "uuid[]", "fences": "bigint[]", "pauses": "bigint[]", "results": "text[]", "progress": "text[]", "gone": "text[]",
    "of": "integer[]", "names": "text[]", "metas": "text[]", "bodies": "text[]",
}  # fmt: skip


class Calls:
    """`listens`: LISTEN stands. `asked`: what this process has asked for, by kind and queue."""

    def __init__(self, url: str, schema: str, clock: Clock | None) -> None:
        self.url, self.schema, self._clock = url, Schema(schema), clock
        self._name, self.listens = secrets.token_hex(8), False
        self.asked: set[tuple[BellKind, str]] = set()
        with coded():
            self.connection = Connection(url)
            self.install = self.look()

    @property
    def now(self) -> int | None:
        return self._clock() if self._clock else None

    @property
    def listener(self) -> str | None:
        return self._name if self.listens else None

    def ask(self, kind: BellKind, queue: str) -> None:
        self.asked.add((kind, queue))

    def look(self) -> str:
        """What tells this very database. It may have been restored since the last look."""
        with self.connection.lock:
            return self.schema.open(self.connection.open())

    def rows(self, function: str, **given: Any) -> Any:
        sql, *parameters = statement(function, given)
        return self.connection.call(self.schema.sql(sql), parameters)

    def answer(self, function: str, **given: Any) -> Any:
        """The one value of a function."""
        return self.rows(function, **given)[0][0]


def statement(function: str, given: Mapping[str, Any]) -> tuple[str, *tuple[Any, ...]]:
    """A call of a function with named arguments."""
    named = ", ".join(f'"{name}" => %s::{_TYPES[name]}' if name in _TYPES else f'"{name}" => %s' for name in given)
    return f"select * from millpond.{function}({named})", *given.values()


def json_of(function: str, given: Mapping[str, Any]) -> tuple[str, *tuple[Any, ...]]:
    """The same, for `ask`."""
    sql, *parameters = statement(function, given)
    return sql.replace("*", "pg_catalog.to_json(answer)", 1) + " as answer", *parameters
