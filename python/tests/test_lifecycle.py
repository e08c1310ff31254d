"""Replays every lifecycle vector on every store."""

from __future__ import annotations

import base64
import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from millpond.backoff import Backoff
from millpond.contract import CONTRACT
from millpond.encoding import Body
from millpond.jobs import Completion, Extension, Failure, JobError, NewJob, Release
from millpond.queues import GroupLimits, Slice
from millpond.rate import Rate
from millpond.store import Store
from millpond.stores.wire import camel, snake
from tests.stores import Clock, Place
from tests.vectors import Case

EPOCH = 1_767_225_600_000
TIMES = {"runAt", "now", "pushedAt", "dueAt", "startedAt", "finishedAt"}
KINDS: Case = {"backoff": Backoff, "rate": Rate, "groupRate": Rate}
FILES = sorted((CONTRACT / "vectors" / "lifecycle").glob("*.json"))
ERROR = JobError("HandlerFailed", "Error", "no reason given")


def uuid_of(short: str) -> str:
    return f"019b76da-a800-7000-8000-{short.encode().hex():0>12}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lifecycle(path: Path, place: Place) -> None:
    vector = json.loads(path.read_text("utf-8"))
    if (vector.get("needs"), place.name) == ("ids of all queues", "redis"):
        pytest.skip("Redis keeps each queue by itself")
    clock = Clock()
    store = place.open(clock)
    try:
        replay(store, clock, vector)
    finally:
        store.close()


def replay(store: Store, clock: Clock, vector: Case) -> None:
    cursors: dict[str, str] = {}  # by job, of the last list that had it
    before: dict[tuple[str, str], int] = {}
    for number, step in enumerate(vector["steps"]):
        clock.now = EPOCH + step["at"]
        asked = inward(step["in"])
        queue = asked.get("queue", "q")
        for item in asked.get("items", ()):
            item["fence"] += before.get((queue, item["id"]), 0)
        given = call(store, step["op"], asked, cursors)
        if step["op"] == "claim":
            # Vectors count a job's fences from 1. On Redis the first one is a high number.
            firsts = [before.setdefault((queue, job.id), job.fence - 1) for job in given.jobs]
            told = [replace(job, fence=job.fence - first) for job, first in zip(given.jobs, firsts, strict=True)]
            given = replace(given, jobs=told)
        if "out" in step:
            expected, answer = step["out"], outward(given)
            if step["op"] == "stats":
                answer = sorted(answer, key=lambda each: each["queue"])
            differences(answer, expected, f"step {number}, {step['op']}")


def call(store: Store, op: str, given: Case, cursors: dict[str, str]) -> Any:
    named = given.pop("queue", None)
    queue = named or "q"
    match op:
        case "configure":
            if "clear" in given:
                given["clear"] = [snake(name) for name in given["clear"]]
            return store.configure(queue, **{snake(name): value for name, value in given.items()})
        case "settings":
            return store.settings(queue)
        case "noteClaims":
            return store.note_claims(given["queues"])
        case "limitGroup":
            limits = given["limits"]
            return store.limit_group(queue, given["group"], None if limits is None else GroupLimits(**limits))
        case "push":
            return store.push([new_job(job) for job in given["jobs"]])
        case "claim":
            lease = given.get("lease", 60_000)
            least = given.get("minPriority", 0)
            per_group = given.get("perGroup", 1)
            return store.claim(queue, given.get("worker", "w"), given.get("limit", 100), lease, least, per_group)
        case "complete":
            return store.complete(queue, [Completion(**item) for item in given["items"]])
        case "fail":
            return store.fail(queue, [failure(item) for item in given["items"]])
        case "release":
            return store.release(queue, [Release(**item) for item in given["items"]])
        case "extend":
            return store.extend(queue, [Extension(**item) for item in given["items"]], given["lease"])
        case "cancel":
            return store.cancel(given["ids"])
        case "sweep":
            return store.sweep(given["limit"])
        case "find":
            return store.find(given["ids"])
        case "list":
            after = given.get("after") and cursors[uuid_of(given["after"])]
            listed = store.list(queue, given["state"], given["limit"], after)
            cursors.update((each.id, each.cursor) for each in listed)
            return listed
        case "requeue":
            if "ids" in given:
                return store.requeue_ids(given["ids"])
            until = None if given.get("until") is None else EPOCH + given["until"]
            return store.requeue_queue(queue, given["limit"], until)
        case "ahead":
            return store.ahead(given["id"])
        case "groups":
            return store.groups(queue, given["limit"], given.get("after"), given.get("group"))
        case "stats":
            return store.stats(named, given.get("minutes", 0))
        case "record":
            return store.record([slice_of(each) for each in given["slices"]])
    raise AssertionError(f"unknown operation {op}")


def new_job(given: Case) -> NewJob:
    job: Case = {"queue": "q", "attempts": 3, "data": Body("json", "null"), **given}
    return NewJob(**{snake(name): value for name, value in job.items()})


def failure(given: Case) -> Failure:
    error = JobError.of(given["error"]) if "error" in given else ERROR
    return Failure(given["id"], given["fence"], error=error, delay=given["delay"])


def slice_of(given: Case) -> Slice:
    buckets = {int(bucket): count for bucket, count in given["buckets"].items()}
    return Slice(given["queue"], given["priority"], given["metric"], buckets)


def inward(given: Any) -> Any:
    """Short ids, times and bodies of a vector in the store's own form."""
    if isinstance(given, list):
        return [inward(each) for each in given]
    if not isinstance(given, dict):
        return given
    if "encoding" in given:
        return Body(given["encoding"], base64.b64decode(given["base64"]) if "base64" in given else given["body"])
    found = {}
    for name, value in given.items():
        if name == "id":
            value = uuid_of(value)
        elif name == "ids":
            value = [uuid_of(each) for each in value]
        elif name in TIMES and value is not None:
            value += EPOCH
        elif name in KINDS and value is not None:
            value = KINDS[name](**value)
        else:
            value = inward(value)
        found[name] = value
    return found


def outward(given: Any) -> Any:
    """The store's answer in the form of a vector."""
    if isinstance(given, (list, tuple)):
        return [outward(each) for each in given]
    if isinstance(given, Body):
        if given.encoding == "json":
            return {"encoding": "json", "body": given.body}
        assert isinstance(given.body, bytes)
        return {"encoding": given.encoding, "base64": base64.b64encode(given.body).decode()}
    if isinstance(given, dict):
        return {str(name): outward(value) for name, value in given.items()}
    if not is_dataclass(given):
        return given
    found: Case = {}
    for each in fields(given):
        name, value = camel(each.name), outward(getattr(given, each.name))
        if name == "id":
            value = bytes.fromhex(value[-12:]).lstrip(b"\0").decode()
        elif name in TIMES and value is not None:
            value -= EPOCH
        elif name == "histograms":
            value.sort(key=lambda slice: (slice["priority"], slice["metric"]))
        found[name] = value
    return found


def differences(answer: Any, expected: Any, at: str) -> None:
    if isinstance(expected, dict):
        assert isinstance(answer, dict), (at, answer, expected)
        for name, value in expected.items():
            differences(answer[name], value, f"{at}.{name}")
    elif isinstance(expected, list):
        assert len(answer) == len(expected), (at, answer, expected)
        for number, value in enumerate(expected):
            differences(answer[number], value, f"{at}[{number}]")
    else:
        assert answer == expected, (at, answer, expected)
