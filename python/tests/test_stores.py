"""What the vectors cannot say, on every store: several clients at once, transactions, bells, errors."""

from __future__ import annotations

import queue as queues
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from redis.exceptions import ConnectionError as ConnectionLost

from millpond.encoding import Body, decode, encode
from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import Bell, Completion, Extension, Failure, Held, JobError, NewJob
from millpond.store import Store
from millpond.stores import open_store
from millpond.stores.postgres.connection import LostAnswer
from millpond.stores.redis import RedisStore
from millpond.stores.redis.scripts import script
from tests.stores import Place, server

NULL = Body("json", "null")
WAIT = 20.0


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    opened = place.open()
    yield opened
    opened.close()


@pytest.fixture
def redis_store(tmp_path: Path) -> Iterator[RedisStore]:
    opened = RedisStore(server("redis"), f"py-{new_id()[-12:]}", partitions=3)
    yield opened
    opened.close()


def job(queue: str = "q", **more: Any) -> NewJob:
    return NewJob(**{"id": new_id(), "queue": queue, "data": NULL, **more})


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


def test_several_clients_open_push_and_claim_at_once(place: Place) -> None:
    def client(number: int) -> tuple[list[str], list[str]]:
        store = place.open()
        pushed = [each.id for _ in range(10) for each in store.push([job(fresh=True) for _ in range(5)])]
        ran = drain(store, "q", f"w{number}")
        store.close()
        return pushed, ran

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(client, range(4)))
    store = place.open()
    ran = [id for _, ids in answers for id in ids] + drain(store, "q", "last")
    assert sorted(ran) == sorted(id for ids, _ in answers for id in ids)
    assert store.stats("q")[0].counts["done"] == 200
    store.close()


def test_one_store_is_used_by_several_threads(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = [each.id for pushed in pool.map(lambda _: store.push([job(), job()]), range(20)) for each in pushed]
        ran = [id for ids in pool.map(lambda number: drain(store, "q", f"w{number}"), range(4)) for id in ids]
    assert sorted(ran) == sorted(ids)


def test_what_one_client_configures_holds_for_another(place: Place) -> None:
    one, other = place.open(), place.open()
    one.configure("q", lease=1_234, attempts=3)
    other.configure("q", paused=True)
    one.push([job()])
    assert other.claim("q", "w", 1).jobs == []
    one.configure("q", paused=False)
    claimed = other.claim("q", "w", 1)
    assert (claimed.lease, claimed.jobs[0].attempts) == (1_234, 3)
    one.close()
    other.close()


def test_a_thousand_jobs_in_one_call(store: Store) -> None:
    jobs = [job(priority=number % 10, key=f"k{number}") for number in range(1_200)]
    assert {each.status for each in store.push(jobs)} == {"pushed"}
    assert [each.id for each in store.push(jobs)] == [each.id for each in jobs]
    claimed = store.claim("q", "w", 1_200).jobs
    assert [each.priority for each in claimed] == sorted((each.priority for each in jobs), reverse=True)
    items = [Extension(each.id, each.fence) for each in claimed]
    assert set(store.extend("q", items)) == {"ok"}
    half = [Completion(each.id, each.fence, encode({"n": 1})) for each in claimed[:600]]
    assert set(store.complete("q", half)) == {"ok"}
    assert set(store.release("q", [Held(each.id, each.fence) for each in claimed[600:]])) == {"ok"}
    assert set(store.cancel([each.id for each in claimed])) == {"done", "cancelled"}
    found = store.find([each.id for each in claimed])
    assert [each.state if each else None for each in found] == ["done"] * 600 + ["cancelled"] * 600


def test_nothing_is_answered_with_nothing(store: Store) -> None:
    answers: list[Sequence[object]] = [store.push([]), store.find([]), store.cancel([]), store.extend("q", [])]
    answers += [store.complete("q", []), store.fail("q", []), store.release("q", [])]
    assert not any(answers) and store.requeue_ids([]) == 0
    store.record([])
    store.configure("q")
    assert list(store.stats()) == []


def test_errors_and_payloads_with_any_text(store: Store) -> None:
    text = "NUL \0, a quote ', a backslash \\, 🌊"
    store.push([job(data=encode({"text": text}), attempts=1, key="'\"`\\;--")])
    claimed = store.claim("q", "w", 1).jobs[0]
    assert decode(claimed.data.encoding, claimed.data.body) == {"text": text}
    error = JobError("HandlerFailed", "ValueError", text, "stack\n  line")
    assert store.fail("q", [Failure(claimed.id, claimed.fence, error=error, delay=None)]) == ["dead"]
    record = store.find([claimed.id])[0]
    assert record and record.error == error


def test_backoff_with_jitter_stays_in_its_bounds(store: Store) -> None:
    store.push([job() for _ in range(20)])
    jobs = store.claim("q", "w", 20).jobs
    error = JobError("HandlerFailed", "Error", "no")
    assert set(store.fail("q", [Failure(each.id, each.fence, error=error, delay="backoff") for each in jobs])) == {"retry"}
    records = [record for record in store.find([each.id for each in jobs]) if record]
    waits = [record.due_at - (record.started_at or 0) for record in records]
    assert len(set(waits)) > 1 and all(500 <= wait < 1_000 + WAIT * 1_000 for wait in waits)


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    refuses("Closed", lambda: store.stats())
    refuses("Closed", lambda: store.push([job()]))


def test_bad_input_is_refused_before_the_store(store: Store) -> None:
    refuses("InvalidName", lambda: store.configure("", paused=True))
    refuses("InvalidOption", lambda: store.configure("q", capacity=0))
    refuses("InvalidOption", lambda: store.configure("q", lease=49))
    untyped: Any = store
    refuses("NotSupported", lambda: untyped.configure("q", running=5))
    refuses("InvalidOption", lambda: untyped.configure("q", walking=5))
    refuses("InvalidOption", lambda: job(priority=10))
    refuses("InvalidOption", lambda: job(delay=-1))
    refuses("InvalidOption", lambda: job(trace="é"))
    refuses("InvalidName", lambda: job(key=""))
    refuses("InvalidName", lambda: Held("job-1", 1))


def test_open_store_by_url(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path}/a.db").close()
    refuses("UnknownScheme", lambda: open_store("mysql://host"))


@pytest.mark.parametrize("url", ["postgres://nobody@127.0.0.1:1/x", "sqlite:/nowhere/at/all.db"])
def test_a_store_that_cannot_be_reached(url: str) -> None:
    refuses("StoreUnavailable", lambda: open_store(url))


# Connections that break


def break_connection(place: Place, store: Any) -> None:
    if place.name == "postgres":
        pid = store._connection._connected.info.backend_pid
        with psycopg.connect(server("postgres"), autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s, 5000)", [pid])
    else:
        # All of the pool's: it has one, since no two calls were under way.
        own = store._connection.client.client_id()
        with redis.Redis.from_url(server("redis")) as another:
            another.client_kill_filter(_id=str(own))


def test_a_push_is_repeated_when_its_connection_breaks(place: Place, store: Store) -> None:
    if place.name == "sqlite":
        pytest.skip("SQLite has no connection that breaks")
    for fresh in (True, False):
        break_connection(place, store)
        jobs = [job(fresh=fresh) for _ in range(3)]
        assert [(each.status, each.id) for each in store.push(jobs)] == [("pushed", each.id) for each in jobs]
    assert store.stats("q")[0].counts["waiting"] == 6


def test_a_store_goes_on_after_its_connection_broke(place: Place, store: Store) -> None:
    if place.name == "sqlite":
        pytest.skip("SQLite has no connection that breaks")
    store.push([job()])
    break_connection(place, store)
    try:
        store.stats()
    except MillpondError as error:
        assert error.code == "StoreUnavailable"
    assert store.stats("q")[0].counts["waiting"] == 1


def test_a_push_whose_answer_was_lost_is_stored_once(store: Store, place: Place) -> None:
    if place.name != "postgres":
        pytest.skip("here the server tells; Redis is tested below")
    connection: Any = store
    run = connection._connection._call
    lost: list[Any] = []

    def loses(sql: str, parameters: Any) -> Any:
        rows = run(sql, parameters)
        if "push_jobs" in sql and not lost:
            lost.append(rows)
            raise LostAnswer("StoreUnavailable", "gone")
        return rows

    connection._connection._call = loses
    jobs = [job(key="k", fresh=True), job(fresh=True), job(key="k", fresh=True)]
    assert [each.status for each in store.push(jobs)] == ["pushed", "pushed", "existing"]
    assert lost and store.stats("q")[0].counts["waiting"] == 2


# Bells


def heard(store: Store, act: Callable[[], object], expected: Bell) -> None:
    """Acts again until the bell comes: a bell may be missed, and a client that waits asks again."""
    bells: queues.SimpleQueue[Bell] = queues.SimpleQueue()
    stop = store.listen(bells.put)
    try:
        for _ in range(int(WAIT / 0.25)):
            act()
            try:
                while True:
                    bell = bells.get(timeout=0.25)
                    if (bell.kind, bell.queue) == (expected.kind, expected.queue):
                        return
            except queues.Empty:
                continue
        raise AssertionError(f"no bell for {expected}")
    finally:
        stop()


@pytest.mark.parametrize("pusher_is_another", [True, False], ids=["of another client", "of its own"])
def test_work_rings(place: Place, store: Store, pusher_is_another: bool) -> None:
    pusher = place.open() if pusher_is_another else store

    def act() -> None:
        drain(store, "q", "w")
        pusher.push([job()])

    heard(store, act, Bell("work", "q"))
    if pusher_is_another:
        pusher.close()


def test_finished_and_cancelled_ring(place: Place, store: Store) -> None:
    other = place.open()

    def finish() -> None:
        id = store.push([job()])[0].id
        store.find([id])
        drain(other, "q", "w")

    def cancel() -> None:
        id = store.push([job()])[0].id
        assert id in [each.id for each in store.claim("q", "w", 10).jobs]
        other.cancel([id])

    heard(store, finish, Bell("finished", "q"))
    heard(store, cancel, Bell("cancelled", "q"))
    other.close()


def test_room_rings(place: Place, store: Store) -> None:
    other = place.open()
    store.configure("q", capacity=1)

    def act() -> None:
        store.push([job(), job()])
        drain(other, "q", "w")

    heard(store, act, Bell("room", "q"))
    other.close()


# Transactions


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
            assert tx.complete("q", Completion(claimed.id, fence)) == outcome
    with store.begin() as tx:
        assert tx.connection.execute(f"select count(*) from {table}").fetchone()[0] == 1
        tx.connection.execute(f"drop table {table}")
        tx.connection.execute("commit")
    assert store.stats("q")[0].counts["done"] == 1


# SQLite


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


# PostgreSQL


def test_the_schemas_version_is_checked() -> None:
    url, schema = server("postgres"), f"py_{new_id()[-12:]}"
    open_store(url, schema=schema).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"update {schema}.meta set version = 99")
    refuses("StoreVersion", lambda: open_store(url, schema=schema))
    refuses("InvalidOption", lambda: open_store(url, schema="pg_mine"))


# Redis


def test_partitions(redis_store: RedisStore) -> None:
    store = redis_store
    store.configure("q", capacity=100)
    jobs = [job(key=f"k{number}" if number % 2 else None, delay=number // 30) for number in range(60)]
    assert {each.status for each in store.push(jobs)} == {"pushed"}
    store.sweep(100)
    assert store.stats("q")[0].capacity == 100 and store.stats("q")[0].counts["waiting"] >= 30
    listed: list[str] = []
    while page := store.list("q", "waiting", 7, listed[-1] if listed else None):
        listed += [each.id for each in page]
    assert sorted(listed) == sorted(each.id for each in jobs)
    claimed = store.claim("q", "w", 60).jobs
    assert len(claimed) == 60
    # Without the keys: the partition does not follow from the id alone.
    assert set(store.extend("q", [Extension(each.id, each.fence) for each in claimed])) == {"ok"}
    assert set(store.complete("q", [Completion(each.id, each.fence) for each in claimed[:30]])) == {"ok"}
    assert store.complete("q", [Completion(claimed[0].id, claimed[0].fence)]) == ["stale"]
    assert set(store.cancel([each.id for each in claimed])) == {"done", "cancelled"}
    assert store.requeue_ids([each.id for each in claimed]) == 30
    assert len(drain(store, "q", "w")) == 30
    assert store.stats("q")[0].counts["done"] == 60


def test_partitions_that_another_client_has_chosen(redis_store: RedisStore) -> None:
    redis_store.push([job()])
    other = RedisStore(server("redis"), redis_store._prefix, partitions=1)
    other.push([job() for _ in range(9)])
    assert len(drain(other, "q", "w")) == 10
    other.close()


def test_settings_come_back_after_the_server_lost_them(redis_store: RedisStore) -> None:
    store = redis_store
    store.configure("q", lease=4_321)
    client = store._connection.client
    for key in client.scan_iter(f"*{store._prefix}*"):
        client.delete(key)
    store.push([job()])
    assert store.claim("q", "w", 1).lease == 4_321
    for key in client.scan_iter(f"*{store._prefix}*"):
        client.delete(key)
    store.claim("q", "w", 1)
    assert store.claim("q", "w", 1).lease == 4_321


def test_a_repeated_call_answers_as_the_first(redis_store: RedisStore) -> None:
    """As if every first answer were lost."""
    store, connection = redis_store, redis_store._connection
    once = connection._once

    def twice(called: Any, keys: Any, items: Any) -> Any:
        once(called, keys, items)
        return once(called, keys, [items[0], "1", *items[2:]] if called.keys and called.name not in ("due", "register", "unregister") else items)

    jobs = [job(key=f"k{number}") for number in range(10)]
    store.push([job()])
    drain(store, "q", "w")
    connection._once = twice  # type: ignore[method-assign]  # the connection is what fails here
    assert [each.status for each in store.push(jobs)] == ["pushed"] * 10
    claimed = store.claim("q", "w", 10).jobs
    assert len(claimed) == 10
    assert set(store.complete("q", [Completion(each.id, each.fence, key=each.key) for each in claimed[:4]])) == {"ok"}
    assert set(store.release("q", [Held(each.id, each.fence, key=each.key) for each in claimed[4:]])) == {"ok"}


def test_a_lost_claim_gives_its_jobs_back(redis_store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store, connection = redis_store, redis_store._connection
    store.push([job(key="k")])
    once, lost = connection._once, threading.Event()

    def loses(called: Any, keys: Any, items: Any) -> Any:
        answer = once(called, keys, items)
        if called.name == "claim" and len(answer) > 5 and not lost.is_set():
            lost.set()
            raise ConnectionLost("gone")
        return answer

    monkeypatch.setattr("millpond.stores.redis.connection.CALL_TIMEOUT", -1.0)
    connection._once = loses  # type: ignore[method-assign]  # the connection is what fails here
    got = []
    for _ in range(6):
        try:
            got += store.claim("q", "w", 1).jobs
        except MillpondError as error:
            assert error.code == "StoreUnavailable"
    assert lost.is_set()
    assert [(each.attempt, each.fence) for each in got] == [(1, 2)]


def test_a_script_is_its_text_with_what_it_includes() -> None:
    assert "\n-- @include" not in script("claim").text
    assert script("due").keys == ("@due", "@ends")
