from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond.store import Store
from tests.stores import STORES, Place, fresh_place


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield fresh_place(request.param, tmp_path)


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    opened = place.open()
    yield opened
    opened.close()
