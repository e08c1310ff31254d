"""The stores under test, on the servers that the environment names; what most tests do with them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from millpond.encoding import Body
from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import Completion, NewJob
from millpond.store import Store
from millpond.stores.postgres import PostgresStore
from millpond.stores.redis import RedisStore
from millpond.stores.sqlite import SqliteStore

STORES = ("sqlite", "postgres", "redis")
WAIT: Final = 20.0


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
    return Place(name, lambda clock: RedisStore(server("redis"), token, clock))


def job(queue: str = "q", **more: Any) -> NewJob:
    return NewJob(**{"id": new_id(), "queue": queue, "data": Body("json", "null"), **more})


def refuses(code: str, call: Callable[[], object]) -> None:
    with pytest.raises(MillpondError) as caught:
        call()
    assert caught.value.code == code


def drain(store: Store, queue: str, worker: str, limit: int = 7) -> list[str]:
    """The ids of all that this worker got, each completed."""
    ran: list[str] = []
    while jobs := store.claim(queue, worker, limit).jobs:
        assert set(store.complete(queue, [Completion(each.id, each.fence, key=each.key) for each in jobs])) == {"ok"}
        ran += [each.id for each in jobs]
    return ran
