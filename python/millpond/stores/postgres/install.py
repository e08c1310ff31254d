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
    "select version, operations, edition, install from pg_catalog.json_to_record(millpond.installed())"
    " as found(version integer, operations text, edition integer, install text)"
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
        functions = Functions()
        version, operations, edition, install = self._installed(connection)
        if not functions.may_stay(version, operations, edition):
            try:
                self._install(connection, functions)
            except psycopg.errors.InsufficientPrivilege:
                if version != functions.version:
                    raise
            except psycopg.Error as error:
                if error.sqlstate not in _OCCUPIED:
                    raise
                message = f"the schema {self.name} has an object of another application: give Millpond one of its own"
                raise MillpondError("InvalidOption", message) from error
            install = self._installed(connection)[3]
        if install is None:
            raise MillpondError("StoreUnavailable", f"the schema {self.name} is not installed for this role")
        return str(install)

    def _installed(self, connection: Connected) -> tuple[Any, ...]:
        """`version`, `operations`, `edition`, `install`. Adopts what was restored, emptied, or replicated there."""
        try:
            found = self.run(connection, _INSTALLED)[0]
            if found[3] is None:
                self.run(connection, f"{_READ_WRITE}; select millpond.adopt()")
                found = self.run(connection, _INSTALLED)[0]
        except psycopg.Error as error:
            # Nothing but the name can be wrong in the statement.
            if error.sqlstate == "42601":
                raise MillpondError("InvalidOption", f"schema {self.name} is a word of SQL: choose another name") from error
            if error.sqlstate not in _NOT_INSTALLED:
                raise
            found = (0, None, 0, None)
        _check_version(found[0])
        return found

    def _install(self, connection: Connected, functions: Functions) -> None:
        with connection.transaction():
            run(connection, _READ_WRITE)
            # So that nothing of the same name in another schema is taken for ours.
            run(connection, "set local search_path = pg_catalog, pg_temp")
            self.run(connection, "select pg_advisory_xact_lock(hashtext('millpond migrate'), 1)")
            there = self.run(connection, "select to_regclass('millpond.meta') is not null")[0][0]
            meta = self.run(connection, "select version, operations, edition from millpond.meta") if there else []
            version, operations, edition = meta[0] if meta else (0, None, 0)
            _check_version(version)
            if functions.may_stay(version, operations, edition):
                return  # another process was first
            if not self.run(connection, "select 1 from pg_namespace where nspname = 'millpond'"):
                self.run(connection, "create schema millpond")
            for text in [*migrations("postgres")[version:], functions.text]:
                self.run(connection, text)
            if not meta:
                self.run(connection, "insert into millpond.meta (version, operations, home) values (0, '', millpond.here())")
            update = "update millpond.meta set version = %s, operations = %s, edition = %s"
            self.run(connection, update, functions.version, functions.digest, functions.edition)


class Functions:
    """All files of functions, and how they are told from others of the same `version`: `digest` and `edition`."""

    def __init__(self) -> None:
        # `shared` first, `roles` last, the rest by name.
        rank = {"shared": 0, "roles": 2}
        paths = sorted((CONTRACT / "postgres").glob("*.sql"), key=lambda path: (rank.get(path.stem, 1), path.stem))
        self.text = "\n".join(path.read_text("utf-8") for path in paths)
        self.digest = hashlib.sha256(self.text.encode()).hexdigest()
        self.edition = int(re.findall(r"^-- Edition: (\d+)$", self.text, re.MULTILINE)[0])
        self.version = len(migrations("postgres"))

    def may_stay(self, version: int, operations: str | None, edition: int) -> bool:
        """Whether the functions that are installed are these, or later ones."""
        return version == self.version and (edition > self.edition or operations == self.digest)


def _check_version(version: int) -> None:
    known = len(migrations("postgres"))
    if version > known:
        raise MillpondError("StoreVersion", f"the schema's version is {version}; this library knows up to {known}")
