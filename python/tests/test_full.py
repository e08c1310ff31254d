"""Small and full disks under the SQLite store."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from millpond.encoding import Body
from millpond.jobs import Completion
from millpond.stores import open_store
from millpond.stores.sqlite import SqliteStore
from tests.stores import job, refuses

LARGE = Body("json", f'"{"x" * 10_000}"')


def test_the_log_takes_a_part_of_the_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    store = open_store(f"sqlite:{tmp_path}/a.db")
    store.configure("q", keep_done=0)
    for _ in range(200):
        store.push([job(data=LARGE)])
        held = store.claim("q", "w", 1).jobs[0]
        assert store.complete("q", [Completion(held.id, held.fence, None)]) == ["ok"]
    assert (tmp_path / "a.db-wal").stat().st_size <= 1 << 20
    store.close()


def test_on_a_full_disk_the_log_gives_its_space_back(tmp_path: Path) -> None:
    store = SqliteStore(f"{tmp_path}/a.db")
    pages = store._connection.execute("pragma page_count").fetchone()[0]
    store._connection.execute(f"pragma max_page_count = {pages + 10}")
    store.push([job(data=LARGE)])
    assert (tmp_path / "a.db-wal").stat().st_size > 0
    refuses("StoreFull", lambda: store.push([job(data=LARGE) for _ in range(20)]))
    assert (tmp_path / "a.db-wal").stat().st_size == 0
    store._connection.execute("pragma max_page_count = 1000000")
    assert store.push([job(data=LARGE)])[0].status == "pushed"
    assert store.stats("q")[0].counts["waiting"] == 2
    store.close()
