"""How claims end, and how they go on: complete, fail, release, extend, journal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.journal import journal, park
from millpond.stores.postgres.wire import all_tagged, fence_of, holds, lines_text, logs_of, outcomes


def end(calls: Calls, op: str, queue: str, items: Sequence[Any], lease: int | None) -> Sequence[str]:
    if op == "journal":
        return journal(calls, queue, items)
    parked = [item for item in items if op == "release" and item.park]
    if parked:
        given_back = [item for item in items if not item.park]
        told = iter(park(calls, queue, parked))
        others = iter(end(calls, op, queue, given_back, lease) if given_back else ())
        return [next(told if item.park else others) for item in items]
    given: dict[str, Any] = {"queue": queue, "now": calls.now}
    match op:
        case "complete":
            given |= holds(items) | {"results": all_tagged(item.result for item in items), "logs": logs_of(items)}
        case "fail":
            given["failures"] = json.dumps([_failure(item) for item in items])
        case "release":
            given |= holds(items) | {"pauses": [item.pause for item in items], "logs": logs_of(items)}
        case "extend":
            given |= holds(items) | {"lease": lease, "progress": all_tagged(item.progress for item in items)}
            given["logs"] = logs_of(items)
    answer: Any = calls.answer(op, **given)
    return answer if op in ("fail", "extend") else outcomes(answer, items)


def _failure(item: Any) -> dict[str, Any]:
    told = {"id": item.id, "fence": fence_of(item), "error": item.error.to_json(), "delay": item.delay}
    return told | {"log": lines_text(item.log)}
