"""The stores under test, on the servers that the environment names, and the clock that they are given."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from millpond.store import Store
from millpond.stores.postgres import PostgresStore
from millpond.stores.redis import RedisStore
from millpond.stores.sqlite import SqliteStore

STORES = ("sqlite", "postgres", "redis")


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


@dataclass
class Place:
    """Where a fresh store is. It can be opened any number of times."""

    name: str
    opener: Callable[[Clock | None], Store]

    def open(self, clock: Clock | None = None) -> Store:
        return self.opener(clock)


def server(name: str) -> str:
    """Its URL. Skips the test if the server could not be started; fails it if nobody tried."""
    variable = f"MILLPOND_TEST_{name.upper()}"
    if reason := os.environ.get(f"{variable}_MISSING"):
        pytest.skip(reason)
    if url := os.environ.get(variable):
        return url
    raise RuntimeError(f"{variable} is not set: run npm run test:python, or npm run servers")


def fresh_place(name: str, folder: Path) -> Place:
    token = f"py_{secrets.token_hex(6)}"
    if name == "sqlite":
        path = str(folder / "jobs.db")
        return Place(name, lambda clock: SqliteStore(path, *([clock] if clock else [])))
    if name == "postgres":
        return Place(name, lambda clock: PostgresStore(server("postgres"), token, clock))
    return Place(name, lambda clock: RedisStore(server("redis"), token, 1, clock))
