from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond.stores.sqlite import SqliteStore
from tests.stores import Clock, Opened


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Opened]:
    clock = Clock()
    store = SqliteStore(str(tmp_path / "jobs.db"), clock)
    yield Opened(store, clock)
    store.close()
