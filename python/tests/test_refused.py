"""One of 100 items is refused by the store for good. The call fails with a code that repeating cannot change; sent in halves, 99 go
through: contract/worker.md, "A refusal"."""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import psycopg
import pytest
from redis import exceptions

from millpond.contract import CONTRACT
from millpond.encoding import Body
from millpond.errors import MillpondError
from millpond.jobs import Completion, Extension, Failure, JobError, JobUpdate
from millpond.store import Store
from millpond.stores.postgres import PostgresStore
from millpond.stores.redis import RedisStore
from millpond.stores.sqlite import SqliteStore
from tests.stores import job, server

COUNT: Final = 100
BAD: Final = 57
ERRORS: Final[dict[str, dict[str, Any]]] = json.loads((CONTRACT / "errors.json").read_text("utf-8"))
Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass
class Refusing:
    store: Store
    bad: str
    """A text that the store refuses with the code."""
    code: str
    in_errors: bool = True
    """It refuses it in errors as well."""


@contextmanager
def sqlite_trigger(folder: Path) -> Iterator[Refusing]:
    path = str(folder / "jobs.db")
    store = SqliteStore(path)
    store.push([job()])
    columns = ("data", "result", "error", "log", "progress")
    is_bad = " or ".join(f"new.{column} like '%zebra%'" for column in columns)
    with sqlite3.connect(path) as connection:
        for event in ("insert", "update"):
            connection.execute(
                f"create trigger guard_{event} after {event} on millpond_jobs when {is_bad}"
                " begin select raise(abort, 'not this one'); end"
            )
    connection.close()
    yield Refusing(store, "zebra", "StoreRefused")
    store.close()


@contextmanager
def postgres_latin1(_: Path) -> Iterator[Refusing]:
    url, name = server("postgres"), f"py_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create database {name} encoding 'LATIN1' locale 'C' template template0")
        store = PostgresStore(urlsplit(url)._replace(path=f"/{name}").geturl())
        # Errors are JSON in ASCII.
        yield Refusing(store, "\U0001f986", "PayloadNotEncodable", in_errors=False)
        store.close()
        connection.execute(f"drop database {name} with (force)")


@contextmanager
def postgres_trigger(_: Path) -> Iterator[Refusing]:
    url, schema = server("postgres"), f"py_{secrets.token_hex(6)}"
    store = PostgresStore(url, schema)
    store.push([job()])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"create function {schema}.guard() returns trigger language plpgsql as $$ begin"
            " if row_to_json(new)::text like '%zebra%' then raise 'not this one'; end if; return new; end $$"
        )
        tables = connection.execute(
            "select table_name from information_schema.columns join pg_class on relname = table_name where table_schema = %s"
            " and column_name = 'data' and relkind = 'r' and relnamespace = %s::regnamespace",
            [schema, schema],
        ).fetchall()
        for (table,) in tables:
            connection.execute(
                f"create trigger guard before insert or update on {schema}.{table} for each row execute function {schema}.guard()"
            )
        yield Refusing(store, "zebra", "StoreRefused")
        store.close()
        connection.execute(f"drop schema {schema} cascade")


@contextmanager
def small_redis(folder: Path) -> Iterator[Refusing]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server in the PATH")
    # A path of a socket has about 100 characters at most.
    path = f"/tmp/millpond-{secrets.token_hex(6)}.sock"
    arguments = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "yes", "--proto-max-bulk-len", "1048576"]
    process = subprocess.Popen([program, *arguments, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while not Path(path).exists():
            assert time.monotonic() < end and process.poll() is None, "redis-server does not start"
            time.sleep(0.01)
        store = RedisStore(f"unix://{path}", "py")
        yield Refusing(store, "x" * 1_200_000, "PayloadTooLarge", in_errors=False)
        store.close()
    finally:
        process.kill()
        process.wait()
        Path(path).unlink(missing_ok=True)


def reset_at(long: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Of a client: the connection is reset at an argument of so many bytes, before the answer was read."""

    def execute(*words: Any, **options: Any) -> Any:
        if any(isinstance(word, (str, bytes)) and len(word) > long for word in words):
            raise exceptions.ConnectionError("Connection reset by peer")
        return real(*words, **options)

    return execute


@contextmanager
def resetting_redis(folder: Path) -> Iterator[Refusing]:
    with small_redis(folder) as refusing:
        assert isinstance(refusing.store, RedisStore)
        client = refusing.store._connection.client
        client.execute_command = reset_at(1_048_576, client.execute_command)
        yield refusing


@contextmanager
def silent_redis(folder: Path) -> Iterator[Refusing]:
    """It tells no setting."""
    with resetting_redis(folder) as refusing:
        assert isinstance(refusing.store, RedisStore)

        def refuse(_: str) -> None:
            raise exceptions.NoPermissionError("NOPERM")

        refusing.store._connection.client.config_get = refuse
        yield refusing


PLACES: Final = (sqlite_trigger, postgres_latin1, postgres_trigger, small_redis, resetting_redis, silent_redis)


@pytest.fixture(params=PLACES, ids=lambda place: place.__name__)
def refusing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Refusing]:
    with request.param(tmp_path) as place:
        yield place


def halved(items: Sequence[Item], call: Callable[[Sequence[Item]], Sequence[Answer]]) -> list[Answer | MillpondError]:
    try:
        return list(call(items))
    except MillpondError as error:
        assert not ERRORS[error.code]["retryable"], error
        if len(items) == 1:
            return [error]
    half = len(items) // 2
    return halved(items[:half], call) + halved(items[half:], call)


def one_told(outcomes: Sequence[object], good: object, code: str) -> None:
    bad = outcomes[BAD]
    assert isinstance(bad, MillpondError) and bad.code == code
    assert "not this one" in str(bad) or code != "StoreRefused"
    assert [each for at, each in enumerate(outcomes) if at != BAD] == [good] * (COUNT - 1)


def text(at: int, bad: str) -> Body:
    return Body("json", json.dumps(bad if at == BAD else at, ensure_ascii=False))


def claimed(store: Store) -> list[Any]:
    store.push([job("work") for _ in range(COUNT)])
    jobs: list[Any] = []
    while more := store.claim("work", "w", COUNT).jobs:
        jobs += more
    assert len(jobs) == COUNT
    return jobs


def test_a_push(refusing: Refusing) -> None:
    jobs = [job("q", data=text(at, refusing.bad), fresh=True) for at in range(COUNT)]
    outcomes = halved(jobs, lambda some: [each.status for each in refusing.store.push(some)])
    one_told(outcomes, "pushed", refusing.code)
    found = refusing.store.find([each.id for each in jobs])
    assert [record is None for record in found] == [at == BAD for at in range(COUNT)]


def test_an_update(refusing: Refusing) -> None:
    jobs = [job("q", delay=60_000) for _ in range(COUNT)]
    refusing.store.push(jobs)
    updates = [JobUpdate(each.id, data=text(at, refusing.bad)) for at, each in enumerate(jobs)]
    one_told(halved(updates, refusing.store.update), "updated", refusing.code)


def test_a_result(refusing: Refusing) -> None:
    jobs = claimed(refusing.store)
    items = [Completion(each.id, each.fence, key=each.key, result=text(at, refusing.bad)) for at, each in enumerate(jobs)]
    one_told(halved(items, lambda some: refusing.store.complete("work", some)), "ok", refusing.code)
    # What goes in its place.
    error = JobError(code=refusing.code, name="MillpondError", message="the store cannot keep the result")
    failure = Failure(jobs[BAD].id, jobs[BAD].fence, error=error, delay=None)
    assert list(refusing.store.fail("work", [failure])) == ["dead"]


def test_an_error(refusing: Refusing) -> None:
    if not refusing.in_errors:
        pytest.skip("it keeps it in errors")
    jobs = claimed(refusing.store)
    items = [
        Failure(
            each.id, each.fence, key=each.key, delay=None,
            error=JobError(code="HandlerFailed", name="E", message=refusing.bad if at == BAD else "no"),
        )
        for at, each in enumerate(jobs)
    ]  # fmt: skip
    one_told(halved(items, lambda some: refusing.store.fail("work", some)), "dead", refusing.code)


def test_progress(refusing: Refusing) -> None:
    jobs = claimed(refusing.store)
    items = [Extension(each.id, each.fence, key=each.key, progress=text(at, refusing.bad)) for at, each in enumerate(jobs)]
    one_told(halved(items, lambda some: refusing.store.extend("work", some)), "ok", refusing.code)
