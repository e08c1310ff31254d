"""Forms on the wire: contract/redis/README.md, "Forms"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgpack

from millpond.backoff import Backoff
from millpond.encoding import Body, Encoding
from millpond.jobs import UNREADABLE, ClaimedJob, JobError, JobFilter, Record
from millpond.once import NEVER, unique_from
from millpond.rate import Rate
from millpond.stores.wire import camel

_ENCODINGS: Final[tuple[Encoding, ...]] = ("json", "msgpack", "bytes")
_FACTS: Final = ("place", "pushed_at", "priority", "attempts", "group", "timeout", "key", "trace", "cost", "placed_at", "remember")
DESCRIBED: Final = 14
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
    if data[:1] not in (b"0", b"1", b"2"):
        # As another program may have stored it. It fails when it is decoded, and spoils no answer with other jobs in it.
        return Body("json", "")
    encoding, body = _ENCODINGS[data[0] - ord("0")], data[1:]
    return Body(encoding, body.decode("utf-8", "replace") if encoding == "json" else body)


def pack_setting(value: object) -> bytes:
    return msgpack.packb(list(vars(value).values()) if isinstance(value, (Backoff, Rate)) else value)


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


def pack_entry(meta: str, body: Body | None) -> bytes:
    """What an entry of a journal holds."""
    text = meta.encode()
    return len(text).to_bytes(4, "big") + text + (encoded(body) or b"-")


def unpack_entry(holds: bytes) -> tuple[str, Body | None]:
    ends = 4 + int.from_bytes(holds[:4], "big")
    return holds[4:ends].decode("utf-8", "replace"), None if holds[ends:] == b"-" else decoded(holds[ends:])


def unpack_absent(data: bytes) -> list[Any]:
    """A list; false means absent, too."""
    return [None if each is False else each for each in msgpack.unpackb(data)]


def list_before(value: bytes) -> tuple[list[Any], bytes]:
    """A list that stands before other bytes, and those."""
    unpacker = msgpack.Unpacker(unicode_errors="replace", max_buffer_size=0)
    unpacker.feed(value)
    found: list[Any] = unpacker.unpack()
    return found, value[unpacker.tell() :]


def facts(record: bytes) -> dict[str, Any]:
    """What only `update` changes about a job."""
    start = 1 + record[0]
    fields, rest = list_before(record[start:])
    data = decoded(rest) or Body("json", "null")
    # What is absent at the end is left out.
    told = dict.fromkeys(_FACTS) | {name: value or None for name, value in zip(_FACTS[4:], fields[4:])}
    queue = record[1:start].decode()
    return told | dict(zip(_FACTS[:4], fields)) | {"cost": told["cost"] or 1, "data": data, "queue": queue}


def _lists(others: bytes) -> tuple[list[int], list[int]]:
    """Of jobs that were claimed before or were due at a time of their own, and of those that have journals."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(others)
    found: list[list[int]] = [*unpacker, [], []]
    return found[0], found[1]


def claimed(answer: Sequence[Any]) -> list[ClaimedJob]:
    """The jobs in the answer of `claim`."""
    if len(answer) < 8:
        return []
    fence, ids, others, *records = answer[5:]
    numbers, journals = _lists(others)
    entries = dict(zip(journals[::2], journals[1::2], strict=True))
    told = {numbers[at]: numbers[at + 1 : at + 4] for at in range(0, len(numbers), 4)}
    jobs = []
    for place, record in enumerate(records, 1):
        own, attempt, due = told.get(place, (fence, 1, 0))
        fields = facts(record)
        del fields["queue"], fields["place"], fields["cost"], fields["placed_at"], fields["remember"]
        due_at = due or fields["pushed_at"]
        jobs.append(ClaimedJob(**fields, id=to_id(ids[place * 16 - 16 : place * 16]), fence=own, attempt=attempt, due_at=due_at, journal=entries.get(place)))
    return jobs


def described(answer: Sequence[Any]) -> tuple[Record, int, int]:
    """A job, its place, and what its state is listed by: when it got its place, is due, its lease ends, or it finished."""
    id, state, fence, attempt, due, started, finished, worker, progress, error, result, packed, log, further = answer
    waits, journal, parked = further or (None, None, None)
    told, state = facts(packed), state.decode()
    place, placed_at, due_at, ends = told.pop("place"), told.pop("placed_at"), abs(int(due)) or told["pushed_at"], int(finished)
    # Of a follower, minus the time from which it may start.
    follows = int(due) < 0
    unique = unique_from(told.pop("remember"))
    record = Record(
        **told, id=to_id(id), state=state, fence=int(fence), attempt=int(attempt),
        due_at=due_at, follows=follows, unique=unique, started_at=int(started) or None,
        finished_at=None if state == "running" else ends or None, error=unpack_error(error),
        log=tuple(log.decode("utf-8", "replace").split("\n")) if log else (),
        worker=worker.decode("utf-8", "replace") if worker else None, progress=decoded(progress), result=decoded(result),
        waits_for=int(waits[1:]) if waits else None, on_dead="run" if waits and waits[:1] == b"r" else None,
        journal=journal, parked=parked.decode("utf-8", "replace") if parked is not None else None,
    )  # fmt: skip
    return record, place, {"waiting": placed_at or record.pushed_at, "blocked": placed_at or record.pushed_at, "scheduled": NEVER if follows else min(due_at, NEVER - 1)}.get(state, ends)


def rate_in(kept: Any) -> Rate | None:
    if not kept:
        return None
    count, per, *burst = kept
    return Rate(count, per, (burst[0] if burst else None) or None)


def start(told: int) -> int | None:
    return None if told < 0 else told


def chosen_by(filter: JobFilter) -> dict[str, Any]:
    given = {camel(name): value for name, value in vars(filter).items() if value is not None}
    return given | ({"data": vars(filter.data)} if filter.data else {})


def bell_of(message: bytes) -> tuple[str, str, str, tuple[str, ...]]:
    """Origin, queue, kind and ids of a bell."""
    unpacker = msgpack.Unpacker()
    unpacker.feed(message)
    origin, queue, kind = unpacker.unpack()
    ids = message[unpacker.tell() :]
    return origin, queue, kind, tuple(to_id(ids[at : at + 16]) for at in range(0, len(ids), 16))
