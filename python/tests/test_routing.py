"""Replays the vectors of the Redis store's routing."""

from __future__ import annotations

from millpond.stores.redis.routing import hash_of, named_part, part_of, partition_of, shared_key, tag_of
from tests.vectors import load

_routing = load("routing")


def test_hash() -> None:
    for case in _routing["hash"]:
        assert hash_of(case["text"]) == case["hash"], case


def test_partitions() -> None:
    for case in _routing["jobs"]:
        assert partition_of(case["id"], case["key"], case["group"], case["partitions"]) == case["partition"], case


def test_keys() -> None:
    for case in _routing["keys"]:
        part = part_of(case["prefix"], case["queue"], case["partition"])
        assert (tag_of(part.prefix, part.bucket), part.key("jobs"), part.key("@due")) == (
            case["tag"], case["jobs"], case["@due"],
        ), case  # fmt: skip
        assert named_part(part.prefix, part.bucket, part.name) == part


def test_shared_keys() -> None:
    for case in _routing["shared"]:
        for name in ("queues", "floor", "bells"):
            assert shared_key(case["prefix"], name) == case[name], case
