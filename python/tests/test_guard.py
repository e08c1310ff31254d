"""What SQLite does not tell of: another program replaces, renames, links or removes the file or its log while it is open."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import millpond.stores.sqlite as module
from millpond.errors import MillpondError
from millpond.jobs import Completion
from millpond.stores import open_store
from millpond.stores.sqlite import SqliteStore
from millpond.stores.sqlite.connection import STATEMENTS, connect
from tests.stores import job, refuses


def _replaced(path: Path) -> None:
    shutil.copyfile(path, f"{path}.new")
    os.replace(f"{path}.new", path)


HARMS: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "renamed": lambda path: path.rename(f"{path}.old"),
    "replaced": _replaced,
    "linked": lambda path: os.link(path, f"{path}.link"),
}


@pytest.mark.parametrize("name", ["a.db", "a.db-wal"])
@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS.keys())
def test_a_file_that_is_not_what_it_was_stops_the_store(tmp_path: Path, name: str, harm: Callable[[Path], object]) -> None:
    store = open_store(f"sqlite:{tmp_path}/a.db")
    store.push([job()])
    harm(tmp_path / name)
    left = set(tmp_path.iterdir())
    for call in (lambda: store.push([job()]), lambda: store.claim("q", "w", 1), store.stats, store.begin):
        refuses("StoreUnavailable", call)
    assert set(tmp_path.iterdir()) == left  # no call has made another file
    store.close()


def test_what_is_refused_is_not_stored(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/a.db")
    os.link(tmp_path / "a.db", tmp_path / "link.db")
    refuses("StoreUnavailable", lambda: store.push([job()]))
    store.close()
    (tmp_path / "link.db").unlink()
    store = open_store(f"sqlite:{tmp_path}/a.db")
    assert store.stats("q") == []
    store.close()


def test_a_file_that_comes_back_stays_refused(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/a.db")
    (tmp_path / "a.db").rename(tmp_path / "old.db")
    refuses("StoreUnavailable", store.stats)
    (tmp_path / "old.db").rename(tmp_path / "a.db")
    refuses("StoreUnavailable", store.stats)
    store.close()


def test_a_commit_is_not_acknowledged_in_a_file_that_was_removed(tmp_path: Path) -> None:
    now = [1_000_000]

    def clock() -> int:
        # Asked for within the transaction.
        if now[0] < 0:
            (tmp_path / "a.db").unlink()
        return abs(now[0])

    store = SqliteStore(f"{tmp_path}/a.db", clock)
    now[0] = -now[0]
    refuses("StoreUnavailable", lambda: store.push([job()]))
    store.close()


def test_a_file_with_two_names_is_not_opened(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path}/a.db").close()
    os.link(tmp_path / "a.db", tmp_path / "link.db")
    refuses("StoreUnavailable", lambda: open_store(f"sqlite:{tmp_path}/a.db"))
    refuses("StoreUnavailable", lambda: open_store(f"sqlite:{tmp_path}/link.db"))


def test_a_handlers_transaction_is_not_acknowledged_in_a_file_that_was_removed(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/a.db")
    store.push([job()])
    held = store.claim("q", "w", 1).jobs[0]
    with store.begin() as tx:
        (tmp_path / "a.db").unlink()
        refuses("StoreUnavailable", lambda: tx.complete("q", [Completion(held.id, held.fence, None)]))
    store.close()


def test_each_refusal_is_an_error_of_its_own(tmp_path: Path) -> None:
    """One that is raised again and again keeps the frames of all calls."""
    store = open_store(f"sqlite:{tmp_path}/a.db")
    (tmp_path / "a.db-wal").unlink()
    errors = []
    for _ in range(3):
        with pytest.raises(MillpondError) as caught:
            store.stats()
        errors.append(caught.value)
    assert len({id(error) for error in errors}) == 3
    store.close()


def test_drafts_that_a_crash_left_are_removed_though_another_process_is_faster(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    open_store(f"sqlite:{path}").close()
    os.link(path, f"{path}.{'a' * 16}")
    # It is listed and leads nowhere, as a draft that was removed after the listing.
    os.symlink(tmp_path / "nowhere", f"{path}.{'b' * 16}")
    open_store(f"sqlite:{path}").close()
    assert path.stat().st_nlink == 1


def test_opening_waits_for_a_process_that_repairs_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = ["select count(*) from sqlite_master", STATEMENTS["claim/picks"]]

    class Repairing(sqlite3.Connection):
        def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
            if sql in refusals:
                refusals.remove(sql)
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
                raise error
            return super().execute(sql, parameters)  # type: ignore[arg-type]

    open_connection = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: open_connection(*args, **more, factory=Repairing))
    store = open_store(f"sqlite:{tmp_path}/a.db")
    assert refusals == []
    store.close()


def test_what_cannot_be_opened_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(f"sqlite:{tmp_path}/a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as own:
        own.execute("update millpond_meta set value = 99 where key = 'version'")
    own.close()
    opened: list[sqlite3.Connection] = []

    def note(path: str) -> sqlite3.Connection:
        opened.append(connect(path))
        return opened[-1]

    monkeypatch.setattr(module, "connect", note)
    refuses("StoreVersion", lambda: open_store(f"sqlite:{tmp_path}/a.db"))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("select 1")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not tell which files a process has open")
def test_another_library_that_has_the_file_open_stops_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millpond.stores.sqlite.guard.LOOK_EVERY", 0.0)
    left_open: list[sqlite3.Connection] = []
    monkeypatch.setattr(module, "_LEFT_OPEN", left_open)
    store = open_store(f"sqlite:{tmp_path}/a.db")
    # As the other library does. Each of them opens this file once.
    other = os.open(tmp_path / "a.db-shm", os.O_RDWR)

    def is_stopped() -> bool:
        try:
            store.push([job()])
        except MillpondError as error:
            return error.code == "SecondLibrary"
        return False

    assert any(is_stopped() for _ in range(10_000))  # a look is rarer where it takes long
    refuses("SecondLibrary", lambda: open_store(f"sqlite:{tmp_path}/a.db"))
    store.close()
    # Closed, they would take the other's log away.
    assert len(left_open) == 2 and (tmp_path / "a.db-wal").exists()
    os.close(other)
    for connection in left_open:
        connection.close()
