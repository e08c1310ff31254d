"""Connections that break, on the stores that have a server."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
import redis

from millpond.errors import LostAnswer, MillpondError
from millpond.store import Store
from tests.stores import Place, job, server


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


@pytest.mark.parametrize(("state", "code"), [("40003", "StoreUnavailable"), ("40001", "StoreBusy")])
def test_a_call_whose_end_the_server_does_not_know_is_made_once(place: Place, store: Store, state: str, code: str) -> None:
    if place.name != "postgres":
        pytest.skip("SQLSTATEs are PostgreSQL's")
    connection: Any = store
    run, tries = connection._connection._call, []

    def counts(sql: str, parameters: Any) -> Any:
        tries.append(sql)
        return run(sql, parameters)

    connection._connection._call = counts
    with pytest.raises(MillpondError) as raised:
        connection._connection.call(f"do $$ begin raise 'as told' using errcode = '{state}'; end $$", ())
    assert raised.value.code == code and isinstance(raised.value, LostAnswer) == (state == "40003")
    assert len(tries) == (1 if state == "40003" else 5)
