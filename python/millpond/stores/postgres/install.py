"""The schema: tables by migrations, and functions. See "Install and open" in contract/postgres/README.md."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

import psycopg

from millpond.contract import CONTRACT, migrations
from millpond.errors import MillpondError
from millpond.stores.postgres.connection import Connected, run

_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,47}")
_NOT_INSTALLED: Final = ("3F000", "42883", "42501")


@dataclass(frozen=True, slots=True)
class Installed:
    version: int
    operations: str
    install: str | None
    """Tells whether a caller's transaction is on this very database; None: a restored copy that nobody has adopted."""


class Schema:
    def __init__(self, name: str) -> None:
        if not _SCHEMA.fullmatch(name):
            raise MillpondError("InvalidOption", f"schema is {name!r}; it has 1 to 48 of a–z 0–9 _")
        self.name = name

    def sql(self, text: str) -> str:
        """`millpond` stands for the schema's name."""
        return re.sub(r"\bmillpond\b", self.name, text)

    def open(self, connection: Connected) -> str:
        """Installs what is missing. The answer is `install`."""
        digest, version = hashlib.sha256(_functions().encode()).hexdigest(), len(migrations("postgres"))
        found = self._installed(connection)
        if found:
            _check_version(found.version)
        if not found or (found.version, found.operations) != (version, digest):
            try:
                self._install(connection, digest)
            except psycopg.errors.InsufficientPrivilege:
                if not found or found.version != version:
                    raise
            found = self._installed(connection)
        if found and found.install is None:
            run(connection, self.sql("select millpond.adopt()"))
            found = self._installed(connection)
        if not found or found.install is None:
            raise MillpondError("StoreUnavailable", f"the schema {self.name} is not installed for this role")
        return found.install

    def _installed(self, connection: Connected) -> Installed | None:
        try:
            rows = run(
                connection,
                self.sql(
                    "select version, operations, install from json_to_record(millpond.installed())"
                    " as found(version integer, operations text, install text) where version is not null"
                ),
            )
        except psycopg.Error as error:
            if error.sqlstate in _NOT_INSTALLED:
                return None
            raise
        return Installed(*rows[0]) if rows else None

    def _install(self, connection: Connected, digest: str) -> None:
        with connection.transaction():
            run(connection, "set transaction isolation level read committed, read write")
            run(connection, self.sql("select pg_advisory_xact_lock(hashtext('millpond migrate'), 1)"))
            found = run(connection, "select to_regclass(%s) is not null", [f"{self.name}.meta"])[0][0]
            rows = run(connection, self.sql("select version, operations from millpond.meta")) if found else []
            if rows:
                _check_version(rows[0][0])
                if rows[0] == (len(migrations("postgres")), digest):
                    return  # another process was first
            if not run(connection, "select 1 from pg_namespace where nspname = %s", [self.name]):
                run(connection, self.sql("create schema millpond"))
            todo = migrations("postgres")
            for text in [*todo[rows[0][0] if rows else 0 :], _functions()]:
                run(connection, self.sql(text))
            run(
                connection,
                self.sql(
                    "update millpond.meta set version = %s, operations = %s"
                    if rows
                    else "insert into millpond.meta (version, operations, home) values (%s, %s, millpond.here())"
                ),
                [len(todo), digest],
            )


def _check_version(version: int) -> None:
    known = len(migrations("postgres"))
    if version > known:
        raise MillpondError("StoreVersion", f"the schema's version is {version}; this library knows up to {known}")


def _functions() -> str:
    """All files of functions: `shared` first, `roles` last, the rest by name."""
    paths = sorted((CONTRACT / "postgres").glob("*.sql"), key=lambda path: (_rank(path.stem), path.stem))
    return "\n".join(path.read_text("utf-8") for path in paths)


def _rank(name: str) -> int:
    return {"shared": 0, "roles": 2}.get(name, 1)
