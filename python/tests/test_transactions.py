"""Pushes in a caller's transaction, and handlers' transactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import Completion
from millpond.store import Store
from tests.stores import Place, job, refuses, server


def caller(place: Place, store: Any) -> Any:
    """A connection of the caller's own to the store's database."""
    if place.name == "sqlite":
        return sqlite3.connect(store._path)
    return psycopg.connect(server("postgres"))


def test_a_push_in_a_callers_transaction(place: Place, store: Store) -> None:
    if place.name == "redis":
        refuses("NotSupported", lambda: store.push([job()], tx=object()))
        refuses("NotSupported", store.begin)
        return
    connection = caller(place, store)
    refuses("TransactionMismatch", lambda: store.push([job()], tx=connection))
    connection.execute("begin")
    gone = store.push([job(), job(delay=1_000)], tx=connection)
    connection.rollback()
    assert store.find([each.id for each in gone]) == [None, None]
    connection.execute("begin")
    kept = store.push([job()], tx=connection)
    assert store.find([kept[0].id]) == [None]
    connection.commit()
    connection.close()
    record = store.find([kept[0].id])[0]
    assert record and record.state == "waiting"
    assert store.stats("q")[0].counts["waiting"] == 1


def test_a_push_that_fails_leaves_the_callers_transaction_as_it_was(place: Place, store: Store) -> None:
    if place.name == "redis":
        pytest.skip("Redis is not the caller's database")
    connection = caller(place, store)
    connection.execute("begin")
    connection.execute("create temporary table mine (n integer)")
    bad = job()
    object.__setattr__(bad, "priority", "high")  # what the database itself refuses
    with pytest.raises(MillpondError):
        store.push([job(), bad], tx=connection)
    connection.execute("insert into mine values (1)")
    connection.commit()
    connection.close()
    assert store.claim("q", "w", 1).jobs == []


def test_a_push_in_a_transaction_elsewhere(place: Place, store: Store, tmp_path: Path) -> None:
    if place.name == "redis":
        pytest.skip("Redis is not the caller's database")
    if place.name == "sqlite":
        connection: Any = sqlite3.connect(tmp_path / "other.db")
    else:
        connection = psycopg.connect(server("postgres").rpartition("/")[0] + "/template1")
    connection.execute("begin")
    refuses("TransactionMismatch", lambda: store.push([job()], tx=connection))
    assert connection.execute("select 1").fetchone()[0] == 1
    connection.close()


def test_a_handlers_writes_commit_with_its_completion(place: Place, store: Store) -> None:
    if place.name == "redis":
        pytest.skip("Redis is not the caller's database")
    table = f"mine_{new_id()[-12:]}"
    with store.begin() as tx:
        tx.connection.execute(f"create table {table} (n integer)")
        tx.connection.execute("commit")
    store.push([job()])
    claimed = store.claim("q", "w", 1).jobs[0]
    for fence, outcome in ((claimed.fence + 1, "stale"), (claimed.fence, "ok"), (claimed.fence, "stale")):
        with store.begin() as tx:
            tx.connection.execute(f"insert into {table} values (1)")
            assert tx.complete("q", [Completion(claimed.id, fence)]) == [outcome]
    with store.begin() as tx:
        assert tx.connection.execute(f"select count(*) from {table}").fetchone()[0] == 1
        tx.connection.execute(f"drop table {table}")
        tx.connection.execute("commit")
    assert store.stats("q")[0].counts["done"] == 1
