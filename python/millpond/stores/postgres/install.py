"""The schema: tables by migrations, and functions. See "Install and open" in contract/postgres/README.md."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

import psycopg

from millpond.contract import CONTRACT, migrations
from millpond.errors import MillpondError
from millpond.stores.postgres.connection import Connected, Rows, run

_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,47}")
_READ_WRITE: Final = "set transaction isolation level read committed, read write"
_NOT_INSTALLED: Final = ("3F000", "42883", "42501")
_INSTALLED: Final = (
    "select version, operations, install from pg_catalog.json_to_record(millpond.installed())"
    " as found(version integer, operations text, install text)"
)
# Objects of others under the same names.
_OCCUPIED: Final = ("42P07", "42P13", "42P16", "42710", "42723", "42809")


class Schema:
    """`millpond` in statements stands for its name."""

    def __init__(self, name: str) -> None:
        if not _SCHEMA.fullmatch(name):
            raise MillpondError("InvalidOption", f"schema is {name!r}; it has 1 to 48 of a–z 0–9 _")
        self.name = name

    def run(self, connection: psycopg.Connection[Any], sql: str, *parameters: object) -> Rows:
        return run(connection, self.sql(sql), parameters)

    def sql(self, text: str) -> str:
        return re.sub(r"\bmillpond\b", self.name, text)

    def open(self, connection: Connected) -> str:
        """Installs what is missing. Answers `install`, which tells this very database."""
        functions, known = _functions(), len(migrations("postgres"))
        digest = hashlib.sha256(functions.encode()).hexdigest()
        version, operations, install = self._installed(connection)
        if (version, operations) != (known, digest):
            try:
                self._install(connection, functions, digest)
            except psycopg.errors.InsufficientPrivilege:
                if version != known:
                    raise
            except psycopg.Error as error:
                if error.sqlstate not in _OCCUPIED:
                    raise
                message = f"the schema {self.name} has an object of another application: give Millpond one of its own"
                raise MillpondError("InvalidOption", message) from error
            version, operations, install = self._installed(connection)
        if install is None:
            raise MillpondError("StoreUnavailable", f"the schema {self.name} is not installed for this role")
        return str(install)

    def _installed(self, connection: Connected) -> tuple[Any, ...]:
        """`version`, `operations`, `install`. Adopts what was restored, emptied, or replicated there."""
        try:
            found = self.run(connection, _INSTALLED)[0]
            if found[2] is None:
                self.run(connection, f"{_READ_WRITE}; select millpond.adopt()")
                found = self.run(connection, _INSTALLED)[0]
        except psycopg.Error as error:
            # Nothing but the name can be wrong in the statement.
            if error.sqlstate == "42601":
                raise MillpondError("InvalidOption", f"schema {self.name} is a word of SQL: choose another name") from error
            if error.sqlstate not in _NOT_INSTALLED:
                raise
            found = (0, None, None)
        _check_version(found[0])
        return found

    def _install(self, connection: Connected, functions: str, digest: str) -> None:
        with connection.transaction():
            run(connection, _READ_WRITE)
            # So that nothing of the same name in another schema is taken for ours.
            run(connection, "set local search_path = pg_catalog, pg_temp")
            self.run(connection, "select pg_advisory_xact_lock(hashtext('millpond migrate'), 1)")
            there = self.run(connection, "select to_regclass('millpond.meta') is not null")[0][0]
            meta = self.run(connection, "select version, operations from millpond.meta") if there else []
            version, operations = meta[0] if meta else (0, None)
            _check_version(version)
            todo = migrations("postgres")
            if (version, operations) == (len(todo), digest):
                return  # another process was first
            if not self.run(connection, "select 1 from pg_namespace where nspname = 'millpond'"):
                self.run(connection, "create schema millpond")
            for text in [*todo[version:], functions]:
                self.run(connection, text)
            if not meta:
                self.run(connection, "insert into millpond.meta (version, operations, home) values (0, '', millpond.here())")
            self.run(connection, "update millpond.meta set version = %s, operations = %s", len(todo), digest)


def _check_version(version: int) -> None:
    known = len(migrations("postgres"))
    if version > known:
        raise MillpondError("StoreVersion", f"the schema's version is {version}; this library knows up to {known}")


def _functions() -> str:
    """All files of functions: `shared` first, `roles` last, the rest by name."""
    rank = {"shared": 0, "roles": 2}
    paths = sorted((CONTRACT / "postgres").glob("*.sql"), key=lambda path: (rank.get(path.stem, 1), path.stem))
    return "\n".join(path.read_text("utf-8") for path in paths)
