"""What a database is refused for, and what opening it does."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from millpond.ids import new_id
from millpond.jobs import Completion
from millpond.store import Store
from millpond.stores import open_store
from millpond.stores.sqlite.fences import Fences
from millpond.stores.sqlite.transaction import Transaction
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
    # Its connection keeps the log there, as a crash does.
    with sqlite3.connect(tmp_path / "a.db") as connection:
        [origin] = connection.execute("select value from millpond_meta where key = 'origin'").fetchone()
        _, file, schema = origin.split(" ")
        connection.execute("update millpond_meta set value = ? where key = 'origin'", [f"another {file} {schema}"])
    fences = []
    for _ in range(2):
        store = open_store(url)
        store.push([job()])
        fences.append(store.claim("q", "w", 1).jobs[0].fence)
        store.close()
    assert fences[0] > 100_001 and fences[0] == fences[1]
    connection.close()


@pytest.mark.parametrize("had_log", [True, False])
def test_of_two_that_open_the_file_one_raises_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, had_log: bool) -> None:
    """The second one opens it between the first one's look at the floor and its lock."""
    url = f"sqlite:{tmp_path}/a.db"
    open_store(url).close()
    connection = sqlite3.connect(tmp_path / "a.db")
    if had_log:
        connection.execute("update millpond_meta set value = 'another' || substr(value, instr(value, ' ')) where key = 'origin'")
        connection.commit()
    beside: list[Store] = []

    class Held(Fences):
        def look(self, tx: Transaction) -> None:
            super().look(tx)
            monkeypatch.undo()
            beside.append(open_store(url))

    monkeypatch.setattr("millpond.stores.sqlite.Fences", Held)
    stores = [open_store(url), *beside]
    assert len(stores) == 2
    fences = []
    for store in stores:
        store.push([job()])
        fences.append(store.claim("q", "w", 1).jobs[0].fence)
        store.close()
    assert fences[0] == fences[1] > 100_001
    connection.close()


@pytest.mark.parametrize("put_back", [shutil.copyfile, os.replace])
def test_a_backup_is_put_back_between_two_runs(tmp_path: Path, put_back: Callable[[str, str], object]) -> None:
    path, backup = f"{tmp_path}/a.db", f"{tmp_path}/backup.db"
    store = open_store(f"sqlite:{path}")
    one = job()
    store.push([one])
    store.close()
    shutil.copyfile(path, backup)
    store = open_store(f"sqlite:{path}")
    stale = store.claim("q", "w", 1).jobs[0]
    store.close()
    put_back(backup, path)
    store = open_store(f"sqlite:{path}")
    assert store.claim("q", "w", 1).jobs[0].fence > stale.fence
    assert store.complete("q", [Completion(stale.id, stale.fence, None)]) == ["stale"]
    store.close()


def test_a_backup_is_restored_while_the_file_is_open(tmp_path: Path) -> None:
    path, backup = f"{tmp_path}/a.db", f"{tmp_path}/backup.db"
    store = open_store(f"sqlite:{path}")
    store.push([job()])
    with sqlite3.connect(path) as own, sqlite3.connect(backup) as copy:
        own.backup(copy)
        stale = store.claim("q", "w", 1).jobs[0]
        copy.backup(own)
    own.close()
    copy.close()
    assert store.claim("q", "w", 1).jobs[0].fence > stale.fence
    assert store.complete("q", [Completion(stale.id, stale.fence, None)]) == ["stale"]
    store.close()


def test_emptied_tables_are_repaired_and_missing_ones_refused(tmp_path: Path) -> None:
    path = f"{tmp_path}/a.db"
    store = open_store(f"sqlite:{path}")
    store.push([job(), job()])
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("delete from millpond_jobs")
        store.sweep(100)
        assert store.stats("q")[0].counts["waiting"] == 0
        store.close()
        connection.execute("delete from millpond_meta")
        store = open_store(f"sqlite:{path}")
        store.push([job()])
        assert len(store.claim("q", "w", 1).jobs) == 1
        connection.execute("drop table millpond_jobs")
        refuses("StoreCorrupt", lambda: store.push([job()]))
        refuses("StoreCorrupt", lambda: open_store(f"sqlite:{path}"))
        store.close()
    connection.close()


def test_a_connection_of_another_library_is_refused(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/a.db")
    refuses("TransactionMismatch", lambda: store.push([job()], tx=object()))
    store.close()


def test_a_lock_that_is_held_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"sqlite:{tmp_path}/a.db")
    with store.begin():
        monkeypatch.setattr("millpond.stores.sqlite.connection.BUSY_TIMEOUT", 0.1)
        refuses("StoreBusy", lambda: store.push([job()]))
        assert store.claim("q", "w", 1).jobs == []
    assert store.push([job()])[0].status == "pushed"
    store.close()


def test_functions_of_a_later_edition_stay() -> None:
    url, schema = server("postgres"), f"py_{new_id()[-12:]}"
    open_store(url, schema=schema).close()
    with psycopg.connect(url, autocommit=True) as connection:
        read = f"select operations, edition from {schema}.meta"
        operations, edition = connection.execute(read).fetchall()[0]
        # The later functions, those of an earlier release, and the way back by hand.
        for given, expected in [(edition + 1, ("other", edition + 1)), (edition - 1, (operations, edition)), (0, (operations, edition))]:
            connection.execute(f"update {schema}.meta set operations = 'other', edition = {given}")
            store = open_store(url, schema=schema)
            assert store.push([job()])[0].status == "pushed"
            store.close()
            assert connection.execute(read).fetchall()[0] == expected


def test_the_schemas_version_is_checked() -> None:
    url, schema = server("postgres"), f"py_{new_id()[-12:]}"
    open_store(url, schema=schema).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"update {schema}.meta set version = 99")
    refuses("StoreVersion", lambda: open_store(url, schema=schema))
    refuses("InvalidOption", lambda: open_store(url, schema="pg_mine"))
