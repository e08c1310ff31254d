"""The stores under test, on the servers that the environment names, and the clock that they are given."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from millpond.store import Store
from millpond.stores.postgres import PostgresStore
from millpond.stores.sqlite import SqliteStore

STORES = ("sqlite", "postgres")


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


@dataclass
class Place:
    """Where a fresh store is; it can be opened any number of times."""

    name: str
    open: Callable[[], Store]
    open_with: Callable[[Clock], Store]
    url: str


def server(name: str) -> str:
    url = os.environ.get(f"MILLPOND_TEST_{name.upper()}")
    if not url:
        raise RuntimeError(f"MILLPOND_TEST_{name.upper()} names no server: run npm run test:python, or npm run servers")
    return url


def fresh_place(name: str, folder: Path) -> Place:
    if name == "sqlite":
        path = str(folder / "jobs.db")
        return Place(name, lambda: SqliteStore(path), lambda clock: SqliteStore(path, clock), path)
    schema = f"py_{secrets.token_hex(6)}"
    url = server("postgres")
    return Place(name, lambda: PostgresStore(url, schema), lambda clock: PostgresStore(url, schema, clock), schema)
