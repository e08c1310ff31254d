"""Replays every lifecycle vector on every store."""

from __future__ import annotations

import base64
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from millpond.backoff import Backoff
from millpond.contract import CONTRACT
from millpond.encoding import Body
from millpond.jobs import (
    BulkChange, Completion, DataFilter, Extension, Failure, JobError, JobFilter, JobUpdate, JournalItem, NewJob, Record, Release,
)
from millpond.once import Once, Unique
from millpond.queues import GroupLimits, Slice, WorkerBeat
from millpond.rate import Rate
from millpond.schedules import Declaration, Firing, ScheduledJob
from millpond.steps import EntriesFrom, NewEntry, Park, Signal
from millpond.store import Store
from millpond.stores.wire import camel, snake
from tests.fences import Fences
from tests.stores import Clock, Place
from tests.vectors import Case

EPOCH = 1_767_225_600_000
PREFIX = "019b76da-a800-7000-8000-"
TIMES = {"runAt", "now", "until", "pushedFrom", "pushedBefore", "since", "seen", "pushedAt", "dueAt", "startedAt", "finishedAt"}
TIMES |= {"from", "expected", "next", "nextAt", "lastAt", "changedAt"}


def unique(**given: Any) -> Unique:
    return Unique(given["for"], given["since"])


def once(**given: Any) -> Once:
    fields: Case = {snake(name): unique(**value) if name == "unique" else value for name, value in given.items()}
    return Once(**fields)


KINDS: Case = {"backoff": Backoff, "rate": Rate, "groupRate": Rate, "unique": unique, "once": once}
FILES = sorted((CONTRACT / "vectors" / "lifecycle").glob("*.json"))
ITEMS: Case = {"complete": Completion, "fail": Failure, "release": Release, "extend": Extension, "update": JobUpdate}
ITEMS |= {"journal": JournalItem, "entries": EntriesFrom, "signal": Signal}
LISTS: Case = {"jobs": NewJob, "slices": Slice, "workers": WorkerBeat, "records": Record, "schedules": Declaration, "firings": Firing}
SINGLE: Case = {"limits": GroupLimits, "filter": JobFilter, "change": BulkChange}
QUEUE: Case = {"queue": "q"}
DEFAULTS: Case = {
    **{op: QUEUE for op in ("configure", "settings", "limitGroup", "complete", "fail", "release", "extend", "journal")},
    **{op: QUEUE for op in ("list", "groups", "bulk")},
    "claim": QUEUE | {"worker": "w", "limit": 100, "lease": 60_000},
    "NewJob": QUEUE | {"attempts": 3, "data": Body("json", "null")},
    "Failure": {"error": {"code": "HandlerFailed", "name": "Error", "message": "no reason given"}},
    "Record": QUEUE
    | {"state": "waiting", "priority": 4, "attempt": 0, "attempts": 3, "fence": 0, "key": None, "group": None, "cost": 1}
    | {"timeout": None, "trace": None, "pushed_at": EPOCH, "due_at": EPOCH, "started_at": None, "finished_at": None}
    | {"worker": None, "data": Body("json", "null"), "progress": None, "result": None, "error": None},
    "schedules": {"limit": 100},
    "Declaration": {"version": "1", "when": "@daily", "job": {}},
    "ScheduledJob": QUEUE | {"attempts": 3, "data": Body("json", "null")},
    "Firing": {"version": "1"},
    "WorkerBeat": QUEUE | {"host": "h", "pid": 1, "slots": 10, "busy": 0},
}


def uuid_of(short: str) -> str:
    return f"{PREFIX}{short.encode().hex():0>12}"


def short_id(id: str) -> str:
    return bytes.fromhex(id[-12:]).lstrip(b"\0").decode()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lifecycle(path: Path, place: Place) -> None:
    vector = json.loads(path.read_text("utf-8"))
    clock = Clock()
    store = place.open(clock)
    try:
        if "steps" in vector.get("needs", ()) and type(store).entries is Store.entries:
            pytest.skip("this store keeps no steps")
        replay(store, clock, vector)
    finally:
        store.close()


def replay(store: Store, clock: Clock, vector: Case) -> None:
    cursors: dict[str, str] = {}  # by job, of the last list that had it; "next", of the last list
    fences = Fences()
    for number, step in enumerate(vector["steps"]):
        clock.now = EPOCH + step["at"]
        asked = inward(step["in"], has_ids=step["op"] != "heartbeat")
        fences.asked(asked)
        given = fences.told(step["op"], asked.get("queue", "q"), call(store, step["op"], asked, cursors))
        if "out" in step:
            expected, answer = step["out"], outward(given)
            if step["op"] == "stats":
                answer = sorted(answer, key=lambda each: each["queue"])
            differences(answer, expected, f"step {number}, {step['op']}")


def call(store: Store, op: str, given: Case, cursors: dict[str, str]) -> Any:
    """The method of the operation's name, with the vector's input and what vectors leave out."""
    given = DEFAULTS.get(op, {}) | given
    if given.get("after") and op in ("list", "bulk"):
        given["after"] = cursors["next" if given["after"] == "next" else uuid_of(given["after"])]
    if "clear" in given:
        given["clear"] = [snake(name) for name in given["clear"]]
    if op in ITEMS and "items" in given:
        given["items"] = [value_of(ITEMS[op], item) for item in given["items"]]
    for name, kind in LISTS.items():
        if name in given:
            given[name] = [value_of(kind, each) for each in given[name]]
    for name, kind in SINGLE.items():
        if isinstance(given.get(name), dict):
            given[name] = value_of(kind, given[name])
    answer = getattr(store, snake(op))(**{snake(name): value for name, value in given.items()})
    if op == "list":
        cursors.update((each.id, each.cursor) for each in answer.jobs)
        if answer.next is not None:
            cursors["next"] = answer.next
    if op == "bulk" and answer.next is not None:
        cursors["next"] = answer.next
    return answer


def value_of(kind: Any, given: Case) -> Any:
    fields = DEFAULTS.get(kind.__name__, {}) | {snake(name): value for name, value in given.items()}
    if "error" in fields and isinstance(fields["error"], dict):
        fields["error"] = JobError.of(fields["error"])
    if "from" in fields:
        fields["start"] = fields.pop("from")
    if kind is Declaration:
        fields["job"] = value_of(ScheduledJob, fields["job"])
    if kind is JobFilter and "data" in fields:
        fields["data"] = DataFilter(**fields["data"])
    if "jobs" in fields:
        fields["jobs"] = [value_of(NewJob, each) for each in fields["jobs"]]
    if "entries" in fields:
        fields["entries"] = [value_of(NewEntry, each) for each in fields["entries"]]
    if "park" in fields:
        fields["park"] = value_of(Park, fields["park"])
    if "buckets" in fields:
        fields["buckets"] = {int(bucket): count for bucket, count in fields["buckets"].items()}
    return kind(**fields)


def inward(given: Any, has_ids: bool = True) -> Any:
    """Short ids, times and bodies of a vector in the store's own form."""
    if isinstance(given, list):
        return [inward(each, has_ids) for each in given]
    if not isinstance(given, dict):
        return given
    if "encoding" in given:
        return Body(given["encoding"], base64.b64decode(given["base64"]) if "base64" in given else given["body"])
    found = {}
    for name, value in given.items():
        if name == "id" and has_ids:
            value = uuid_of(value)
        elif name == "partOf" and value is not None:
            value = uuid_of(value)
        elif name == "ids" or (name == "after" and isinstance(value, list)):
            value = [uuid_of(each) for each in value]
        elif name in TIMES and value is not None:
            value += EPOCH
        elif name in KINDS and value is not None:
            value = KINDS[name](**value)
        else:
            value = inward(value, has_ids)
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
    if isinstance(given, Unique):
        return {"for": given.ms, "since": given.since}
    if not is_dataclass(given):
        return given
    found: Case = {}
    for each in fields(given):
        name, value = {"start": "from"}.get(each.name, camel(each.name)), outward(getattr(given, each.name))
        if name == "id" and value is not None and value.startswith(PREFIX):
            value = short_id(value)
        elif name == "parent" and value is not None:
            value = short_id(value)
        elif name in ("sample", "parents", "children", "gone"):
            value = [short_id(each) for each in value]
        elif name in TIMES and isinstance(value, int):
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
