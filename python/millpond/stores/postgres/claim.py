from __future__ import annotations

import json
from typing import Any, Final

from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.wire import body_of

_FIELDS: Final = ("id", "fence", "attempt", "attempts", "priority", "pushed_at", "due_at", "data")
_MORE: Final = ("key", "group", "timeout", "trace")


def claim(
    calls: Calls, queue: str, worker: str, limit: int, lease: int | None, min_priority: int, per_group: int
) -> Claimed:
    calls.ask("work", queue)
    calls.ask("cancelled", queue)
    given = {
        "queue": queue, "worker": worker, "limit": limit, "lease": lease, "min_priority": min_priority, "per_group": per_group,
    }  # fmt: skip
    for _ in range(2):
        at, lease_given, jobs, retry_after, asleep, _bounded, limited, _slots = calls.rows(
            "claim", **given, listener=calls.listener, now=calls.now
        )[0]
        # A push that runs at this moment may not notify this process.
        if not asleep:
            break
    return Claimed(at, lease_given, retry_after, limited, [job_of(*each) for each in json.loads(jobs or "[]")])


def job_of(*fields: Any) -> ClaimedJob:
    told = dict(zip(_FIELDS, fields))
    encoding: Any
    *more, encoding, journal = (*fields[8], None)[:6] if len(fields) > 8 else (None, None, None, None, "json", None)
    own = {"data": body_of(encoding, told["data"]), "journal": journal}
    return ClaimedJob(**told | dict(zip(_MORE, more)) | own)
