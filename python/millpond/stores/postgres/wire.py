"""Forms on the wire: see contract/postgres/README.md."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from millpond.encoding import Body, Encoding
from millpond.jobs import Held, JobError, JobOutcome, Outcome, Record
from millpond.once import Unique
from millpond.stores.wire import camel, read

BODIES: Final = ("data", "progress", "result")
_MOST_FENCE: Final = 2**53 - 1
_TAGS: Final[dict[str, Encoding]] = {"j": "json", "m": "msgpack", "b": "bytes"}


def tagged(body: Body | None) -> str | None:
    if body is None:
        return None
    return body.encoding[0] + (body.body if isinstance(body.body, str) else base64.b64encode(body.body).decode())


def all_tagged(bodies: Iterable[Body | None]) -> list[str | None] | None:
    texts = [tagged(body) for body in bodies]
    return texts if any(texts) else None


def body_of(encoding: Encoding, text: str) -> Body:
    return Body(encoding, text if encoding == "json" else base64.b64decode(text))


def untagged(text: str) -> Body:
    return body_of(_TAGS[text[0]], text[1:])


def fence_of(item: Held) -> int:
    # 0 is nobody's.
    return item.fence if item.fence <= _MOST_FENCE else 0


def holds(items: Sequence[Held]) -> dict[str, Any]:
    return {"ids": [item.id for item in items], "fences": [fence_of(item) for item in items]}


def outcomes(valid: Sequence[int] | None, items: Sequence[Held]) -> list[Outcome]:
    """`valid`: numbers from 1; None: all."""
    return ["ok" if valid is None or at in valid else "stale" for at in range(1, len(items) + 1)]


def record_of(told: Mapping[str, Any]) -> Record:
    bodies = {name: told[name] and untagged(told[name]) for name in BODIES}
    error = None if told["error"] is None else JobError.from_json(told["error"])
    log = tuple(told["log"].split("\n")) if told["log"] else ()
    unique = Unique(told["unique"]["for"], told["unique"]["since"]) if told["unique"] else None
    return read(Record, told, **bodies, error=error, log=log, unique=unique)


def outcome_of(told: Mapping[str, Any]) -> JobOutcome:
    error = None if told["error"] is None else JobError.from_json(told["error"])
    return read(JobOutcome, told, result=told["result"] and untagged(told["result"]), error=error)


def fields_of(record: Record) -> dict[str, Any]:
    fields = {camel(name): value for name, value in vars(record).items()}
    bodies = {name: tagged(fields[name]) for name in BODIES}
    error = record.error and record.error.to_json()
    unique = record.unique and {"for": record.unique.ms, "since": record.unique.since}
    entries = [{"name": each.name, "meta": each.meta, "body": tagged(each.body)} for each in record.entries]
    own = {"error": error, "log": lines_text(record.log), "unique": unique, "entries": entries}
    return fields | bodies | own


def lines_text(log: Sequence[str]) -> str | None:
    return "\n".join(log) or None


def logs_of(items: Sequence[Held]) -> list[str | None] | None:
    return [lines_text(item.log) for item in items] if any(item.log for item in items) else None
