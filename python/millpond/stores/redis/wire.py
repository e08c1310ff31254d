"""Forms on the wire: contract/redis/README.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgpack

from millpond.encoding import Body, Encoding
from millpond.jobs import UNREADABLE, ClaimedJob, JobError, Record, State
from millpond.stores.redis.routing import Part

_ENCODINGS: Final[tuple[Encoding, ...]] = ("json", "msgpack", "bytes")
DESCRIBED: Final = 11
"""How many items of an answer describe a job."""


def to_bytes(id: str) -> bytes:
    return UUID(id).bytes


def to_id(given: bytes) -> str:
    return str(UUID(bytes=given))


def encoded(body: Body | None) -> bytes:
    if body is None:
        return b""
    data = body.body.encode("utf-8") if isinstance(body.body, str) else body.body
    return str(_ENCODINGS.index(body.encoding)).encode() + data


def decoded(data: bytes | None) -> Body | None:
    if not data:
        return None
    encoding, body = _ENCODINGS[data[0] - ord("0")], data[1:]
    return Body(encoding, body.decode("utf-8", "replace") if encoding == "json" else body)


def pack_error(error: JobError) -> bytes:
    fields = [error.code, error.name, error.message] + ([] if error.stack is None else [error.stack])
    return msgpack.packb(fields, unicode_errors="replace")


def unpack_error(data: bytes | None) -> JobError | None:
    if data is None:
        return None
    try:
        fields = msgpack.unpackb(data, unicode_errors="replace")
        return JobError(*fields) if all(isinstance(each, str) for each in fields) else UNREADABLE
    except (ValueError, TypeError, msgpack.UnpackException):
        return UNREADABLE


@dataclass(frozen=True, slots=True)
class Facts:
    """What never changes about a job."""

    place: int
    pushed_at: int
    priority: int
    attempts: int
    group: str | None
    timeout: int | None
    key: str | None
    trace: str | None
    data: Body


def facts(record: bytes) -> Facts:
    unpacker = msgpack.Unpacker(unicode_errors="replace", max_buffer_size=0)
    unpacker.feed(record)
    fields: list[Any] = unpacker.unpack()
    # False means absent, too; what is absent at the end is left out.
    given: list[Any] = [None if each is False else each for each in fields] + [None] * (8 - len(fields))
    data = decoded(record[unpacker.tell() :]) or Body("json", "null")
    place, pushed_at, priority, attempts, group, timeout, key, trace = given
    return Facts(place, pushed_at, priority, attempts, group, timeout, key, trace, data)


def claimed(answer: Sequence[Any]) -> ClaimedJob:
    id, fence, attempt, due, record = answer
    told = facts(record)
    return ClaimedJob(
        to_id(id), fence, attempt, told.attempts, told.priority, told.group, told.key, told.timeout, told.trace,
        told.pushed_at, due or told.pushed_at, told.data,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A job as a script described it, and where it stands in a list of its state."""

    part: Part
    record: Record
    place: int
    time: int
    """When it was pushed, is due, its lease ends, or it finished: what its state is listed by."""


def found(part: Part, described: Sequence[Any]) -> Found:
    id, state, attempt, due, started, finished, worker, progress, error, result, record = described
    told, named = facts(record), _state(state)
    due_at, ends = int(due) or told.pushed_at, int(finished)
    time = {"waiting": told.pushed_at, "scheduled": due_at}.get(named, ends)
    kept = Record(
        to_id(id), part.queue, named, told.priority, int(attempt), told.attempts, told.key, told.group, told.timeout,
        told.trace, told.pushed_at, due_at, int(started) or None, None if named == "running" else ends or None,
        worker.decode("utf-8", "replace") if worker else None, told.data, decoded(progress), decoded(result),
        unpack_error(error),
    )  # fmt: skip
    return Found(part, kept, told.place, time)


def _state(given: bytes) -> State:
    state: Any = given.decode()
    known: State = state
    return known
