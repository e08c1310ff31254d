"""Errors have no payload and no secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from millpond.encoding import Body, decode, encode
from millpond.errors import MillpondError
from millpond.stores import open_store
from tests.stores import fresh_place, job

SECRET = "hunter2"


def told(call: Callable[[], object]) -> str:
    """The error, and all that a traceback shows of it."""
    with pytest.raises(MillpondError) as caught:
        call()
    error: BaseException | None = caught.value
    texts = []
    while error is not None:
        texts.append(f"{error!r} {error}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(texts)


@pytest.mark.parametrize("value", [{SECRET}, {1: SECRET}, {"deep": [frozenset([SECRET])]}], ids=str)
def test_of_what_cannot_be_encoded(value: object) -> None:
    assert SECRET not in told(lambda: encode(value))


def test_of_what_cannot_be_decoded() -> None:
    extension = b"\xc7" + bytes([len(SECRET), 5]) + SECRET.encode()
    assert SECRET not in told(lambda: decode("msgpack", extension))


@pytest.mark.parametrize("scheme", ["postgres", "redis"])
@pytest.mark.parametrize("password", [f"%{SECRET}", f"{SECRET}/x"])
def test_of_a_url(scheme: str, password: str) -> None:
    host = "127.0.0.1:1" if scheme == "redis" else "127.0.0.1:1/app"
    assert SECRET not in told(lambda: open_store(f"{scheme}://user:{password}@{host}").stats())


def test_of_a_row_that_postgresql_refuses(tmp_path: Path) -> None:
    store = fresh_place("postgres", tmp_path).open()
    store.push([job(data=Body("json", f'"{SECRET}"'))])
    text = told(lambda: store.claim("q", "w" * 2**21, 1))
    assert "text_too_large" in text and SECRET not in text
    store.close()
