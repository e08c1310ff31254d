"""Forms on the wire: contract/postgres/README.md."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from millpond.encoding import Body, Encoding
from millpond.jobs import STATES, ClaimedJob, Held, JobError, NewJob, Outcome, QueueStats, Record, Slice

MOST_FENCE: Final = 2_147_483_647
_TAGS: Final[dict[Encoding, str]] = {"json": "j", "msgpack": "m", "bytes": "b"}
_ENCODINGS: Final[dict[str, Encoding]] = {tag: encoding for encoding, tag in _TAGS.items()}


def tagged(body: Body | None) -> str | None:
    if body is None:
        return None
    text = body.body if isinstance(body.body, str) else base64.b64encode(body.body).decode()
    return _TAGS[body.encoding] + text


def untagged(text: str | None) -> Body | None:
    return None if text is None else _body(_ENCODINGS[text[0]], text[1:])


def _body(encoding: Encoding, text: str) -> Body:
    return Body(encoding, text if encoding == "json" else base64.b64decode(text))


def job_json(job: NewJob, again: bool) -> dict[str, object]:
    return {
        "id": job.id, "queue": job.queue, "priority": job.priority, "delay": job.delay, "runAt": job.run_at,
        "key": job.key, "group": job.group, "attempts": job.attempts, "timeout": job.timeout, "trace": job.trace,
        "data": tagged(job.data), "fresh": job.fresh and not again,
    }  # fmt: skip


def holds(items: Sequence[Held]) -> tuple[list[str], list[int]]:
    return [item.id for item in items], [_fence(item) for item in items]


def _fence(item: Held) -> int:
    # 0 is nobody's.
    return item.fence if item.fence <= MOST_FENCE else 0


def failure_json(item: Any) -> dict[str, object]:
    delay = None if item.delay is None else str(item.delay)
    return {"id": item.id, "fence": _fence(item), "error": item.error.to_json(), "delay": delay}


def outcomes(valid: Sequence[int] | None, count: int) -> list[Outcome]:
    """`valid`: positions from 1; None: all."""
    held = range(1, count + 1) if valid is None else set(valid)
    return ["ok" if at in held else "stale" for at in range(1, count + 1)]


def claimed_jobs(text: str | None) -> list[ClaimedJob]:
    return [_claimed(*fields) for fields in json.loads(text)] if text else []


def _claimed(
    id: str, fence: int, attempt: int, attempts: int, priority: int, pushed_at: int, due_at: int, data: str,
    more: tuple[Any, ...] = (None, None, None, None, "json"),
) -> ClaimedJob:  # fmt: skip
    key, group, timeout, trace, encoding = more
    return ClaimedJob(
        id, fence, attempt, attempts, priority, group, key, timeout, trace, pushed_at, due_at, _body(encoding, data)
    )


def record(found: Mapping[str, Any]) -> Record:
    return Record(
        found["id"], found["queue"], found["state"], found["priority"], found["attempt"], found["attempts"],
        found["key"], found["group"], found["timeout"], found["trace"], found["pushedAt"], found["dueAt"],
        found["startedAt"], found["finishedAt"], found["worker"], untagged(found["data"]) or Body("json", "null"),
        untagged(found["progress"]), untagged(found["result"]),
        None if found["error"] is None else JobError.from_json(found["error"]),
    )  # fmt: skip


def queue_stats(found: Mapping[str, Any]) -> QueueStats:
    name, counts = found["queue"], found["counts"]
    slices = [
        Slice(name, each["priority"], each["metric"], {int(at): count for at, count in each["buckets"].items()})
        for each in found["histograms"]
    ]
    return QueueStats(
        name,
        found["capacity"],
        found["paused"],
        {state: counts.get(state, 0) for state in STATES},
        None if found["oldestWaiting"] is None else max(0, found["oldestWaiting"]),
        slices,
    )
