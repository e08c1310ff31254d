"""What the application registers for its own values changes no answer of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.rows import dict_row
from psycopg.types.json import set_json_dumps, set_json_loads

from millpond.encoding import Body
from millpond.ids import new_id
from millpond.jobs import Completion
from millpond.stores import open_store
from tests.stores import drain, job, server


class Changed(Loader):
    def load(self, data: Any) -> Any:
        return {"changed": bytes(data)}


class Broken(Dumper):
    def dump(self, obj: Any) -> bytes:
        return b"broken"


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Adapters for the whole process, as applications register them."""
    strange = AdaptersMap(psycopg.adapters)
    for name in ("json", "jsonb", "bool", "int4", "int8", "text", "uuid", 1009, 1007):
        strange.register_loader(name, Changed)
    for kind in (str, int, bool, list):
        strange.register_dumper(kind, Broken)
    monkeypatch.setattr("psycopg.postgres.adapters", strange)
    set_json_loads(lambda data: "changed")
    yield
    set_json_loads(json.loads)
    set_json_dumps(json.dumps)


def test_every_answer_is_the_same(strange: None) -> None:
    url, schema = server("postgres"), f"py_{new_id()[-12:]}"
    store = open_store(url, schema=schema)
    try:
        store.configure("q", lease=60_000, capacity=10)
        first = store.push([job(key="k")])[0]
        assert store.push([job(key="k")])[0].status == "existing"
        with psycopg.connect(url, row_factory=dict_row) as connection:
            connection.execute("select")
            told = store.push([job(key="k"), job(data=Body("json", '"%s \'\u00e9\\\\"'))], tx=connection)
            assert [each.status for each in told] == ["existing", "pushed"]
        [claimed, _] = store.claim("q", "w", 2).jobs
        assert claimed.id == first.id
        transaction = store.begin()
        assert transaction.complete("q", [Completion(claimed.id, claimed.fence, key="k")]) == ["ok"]
        record = store.find([first.id])[0]
        assert record and record.state == "done"
        assert store.stats("q")[0].counts["done"] == 1
    finally:
        store.close()


def test_the_schema_was_restored_emptied_or_is_no_name() -> None:
    url, schema = server("postgres"), f"py_{new_id()[-12:]}"
    store = open_store(url, schema=schema)
    store.push([job()])
    [before] = store.claim("q", "w", 1).jobs
    with psycopg.connect(url, autocommit=True) as connection:
        # What a restore in the same place leaves: rows in other files.
        connection.execute(f"update {schema}.meta set home = 'elsewhere'")
        connection.execute(f"delete from {schema}.fence_floor")
        connection.execute(f"insert into {schema}.waiting select * from {schema}.running")
        connection.execute(f"update {schema}.waiting set lease_until = null, fence = 0")
        connection.execute(f"delete from {schema}.running")
        with connection.transaction():
            store.push([job()], tx=connection)
        jobs = store.claim("q", "w", 2).jobs
        assert all(each.fence > before.fence + 1 for each in jobs)
        assert store.complete("q", [Completion(before.id, before.fence)]) == ["stale"]
        tables = connection.execute(
            "select string_agg(oid::regclass::text, ', ') from pg_class"
            " where relnamespace = %s::regnamespace and relkind in ('r', 'p')",
            (schema,),
        ).fetchone()
        assert tables
        connection.execute(f"truncate {tables[0]}")
    store.push([job()])
    assert len(drain(store, "q", "w")) == 1
    open_store(url, schema=schema).close()
    store.close()
    with pytest.raises(Exception, match="a word of SQL"):
        open_store(url, schema="order")
