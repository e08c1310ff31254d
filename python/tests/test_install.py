"""What a database is refused for, and what opening it does."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest

from millpond.ids import new_id
from millpond.stores import open_store
from tests.stores import job, refuses, server


def test_a_file_is_private_and_its_version_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    open_store(f"sqlite:{path}").close()
    assert path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(path) as connection:
        connection.execute("update millpond_meta set value = 99 where key = 'version'")
    connection.close()
    refuses("StoreVersion", lambda: open_store(f"sqlite:{path}"))
    broken = tmp_path / "b.db"
    broken.write_bytes(b"not a database" * 100)
    refuses("StoreCorrupt", lambda: open_store(f"sqlite:{broken}"))


def test_fences_rise_after_a_start_of_the_machine(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/a.db"
    open_store(url).close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("update millpond_meta set value = 'another start' where key = 'boot'")
    connection.close()
    for _ in range(2):
        store = open_store(url)
        store.push([job()])
        assert store.claim("q", "w", 1).jobs[0].fence == 100_001
        store.close()


def test_a_lock_that_is_held_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"sqlite:{tmp_path}/a.db")
    with store.begin():
        monkeypatch.setattr("millpond.stores.sqlite.connection.BUSY_TIMEOUT", 0.1)
        refuses("StoreBusy", lambda: store.push([job()]))
        assert store.claim("q", "w", 1).jobs == []
    assert store.push([job()])[0].status == "pushed"
    store.close()


def test_the_schemas_version_is_checked() -> None:
    url, schema = server("postgres"), f"py_{new_id()[-12:]}"
    open_store(url, schema=schema).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"update {schema}.meta set version = 99")
    refuses("StoreVersion", lambda: open_store(url, schema=schema))
    refuses("InvalidOption", lambda: open_store(url, schema="pg_mine"))
