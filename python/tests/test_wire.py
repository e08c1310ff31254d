"""Replays `contract/vectors/wire/`: what is read and written beside the operations."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgpack
import pytest

from millpond.encoding import Body
from millpond.jobs import Held, JobError
from millpond.stores.postgres.claim import job_of as postgres_job_of
from millpond.stores.postgres import wire as postgres_wire
from millpond.stores.redis import wire
from millpond.stores.sqlite.claim import job_of
from tests.vectors import Case, label, load

_redis, _sqlite, _postgres = load("wire/redis"), load("wire/sqlite"), load("wire/postgres")
_NAMES = {"pushed_at": "pushedAt", "due_at": "dueAt", "placed_at": "placedAt"}


def _bytes(case: Case) -> bytes:
    return bytes.fromhex(case["hex"])


def _body(given: Case) -> Body:
    return Body(given["encoding"], given["body"] if "body" in given else base64.b64decode(given["base64"]))


def _same(told: dict[str, Any], expected: Case) -> None:
    """Of what the case names."""
    named = {_NAMES.get(name, name): value for name, value in told.items()}
    for name, value in expected.items():
        assert named[name] == (_body(value) if name == "data" else value), name


def test_redis_ids() -> None:
    for case in _redis["ids"]:
        assert wire.to_bytes(case["id"]) == _bytes(case)
        assert wire.to_id(_bytes(case)) == case["id"]


@pytest.mark.parametrize("case", _redis["bodies"], ids=label)
def test_redis_bodies(case: Case) -> None:
    assert wire.encoded(_body(case["body"])) == _bytes(case)
    assert wire.decoded(_bytes(case)) == _body(case["body"])


@pytest.mark.parametrize("case", _redis["heads"], ids=label)
def test_redis_heads(case: Case) -> None:
    assert msgpack.unpackb(_bytes(case)) == case["head"]
    assert msgpack.packb(case["head"]) == _bytes(case)


@pytest.mark.parametrize("case", _redis["records"], ids=label)
def test_redis_records(case: Case) -> None:
    _same(wire.facts(_bytes(case)), case["record"])


@pytest.mark.parametrize("case", _redis["errors"], ids=label)
def test_redis_errors(case: Case) -> None:
    error = JobError(**case["error"])
    assert wire.unpack_error(_bytes(case)) == error
    assert wire.pack_error(error) == _bytes(case)


@pytest.mark.parametrize("case", _redis["claims"], ids=label)
def test_redis_claims(case: Case) -> None:
    jobs = wire.claimed([part if isinstance(part, int) else _bytes(part) for part in case["answer"]])
    assert len(jobs) == len(case["jobs"])
    for job, expected in zip(jobs, case["jobs"]):
        _same(vars(job), expected)


@pytest.mark.parametrize("case", _redis["bells"], ids=label)
def test_redis_bells(case: Case) -> None:
    origin, queue, kind, ids = wire.bell_of(_bytes(case))
    assert {"origin": origin, "queue": queue, "kind": kind, "ids": list(ids)} == case["bell"]


@pytest.mark.parametrize("case", _sqlite["claims"], ids=label)
def test_sqlite_claims(case: Case) -> None:
    data = case["row"]["data"]
    job = job_of(json.loads(case["row"]["job"]), data["text"] if "text" in data else base64.b64decode(data["base64"]))
    _same(vars(job), case["job"])


def test_sqlite_errors() -> None:
    for case in _sqlite["errors"]:
        assert JobError.from_json(case["text"]) == JobError(**case["error"])


@pytest.mark.parametrize("case", _postgres["bodies"], ids=label)
def test_postgres_bodies(case: Case) -> None:
    body, text = _body(case["body"]), case["text"]
    assert postgres_wire.tagged(body) == text
    assert postgres_wire.body_of(body.encoding, text[1:]) == body


@pytest.mark.parametrize("case", _postgres["claims"], ids=label)
def test_postgres_claims(case: Case) -> None:
    _same(vars(postgres_job_of(*case["list"])), case["job"])


@pytest.mark.parametrize("case", _postgres["held"], ids=label)
def test_postgres_holds(case: Case) -> None:
    held = [Held("0198c0de-0000-7000-8000-000000000001", 1)] * case["claims"]
    assert postgres_wire.outcomes(case["answer"], held) == case["outcomes"]
