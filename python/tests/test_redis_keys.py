"""Keys of Redis as another client finds them: `contract/vectors/wire/redis-keys.json`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import redis

from millpond.stores.redis import RedisStore
from tests.stores import Clock, fresh_place, server
from tests.test_lifecycle import replay
from tests.vectors import Case, label, load


def _kept_in(client: Any, key: str) -> Case:
    """A hash, or a sorted set."""
    if client.type(key) == b"hash":
        return {name.hex(): value.hex() for name, value in client.hgetall(key).items()}
    return {name.hex(): score for name, score in client.zrange(key, 0, -1, withscores=True)}


def _is_as(actual: Any, expected: Any) -> bool:
    """Each digit that the vector leaves open is one."""
    if isinstance(expected, str):
        return isinstance(actual, str) and re.fullmatch(expected.replace(".", "[0-9a-f]"), actual) is not None
    return bool(actual == expected)


@pytest.mark.parametrize("case", load("wire/redis-keys")["cases"], ids=label)
def test_redis_keys(case: Case, tmp_path: Path) -> None:
    clock = Clock()
    store = fresh_place("redis", tmp_path).open(clock)
    assert isinstance(store, RedisStore)
    client = redis.Redis.from_url(server("redis"))
    try:
        replay(store, clock, case)
        for key, expected in case["keys"].items():
            actual = _kept_in(client, store._connection.start + key)
            assert actual.keys() == expected.keys(), key
            assert all(_is_as(actual[name], value) for name, value in expected.items()), (key, actual, expected)
    finally:
        client.close()
        store.close()
