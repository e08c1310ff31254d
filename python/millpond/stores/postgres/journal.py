"""Steps: journal, entries, signal, and parks of release."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from millpond.errors import MillpondError
from millpond.jobs import JournalItem, Release
from millpond.steps import EntriesFrom, EntriesPage, Entry, NewEntry, Signal, Signalled
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.wire import fence_of, holds, lines_text, logs_of, tagged, untagged

Item = TypeVar("Item")

PATIENCE: Final = 0.1
"""Seconds for which entries and parks wait for another transaction. After that, the worker sends them again."""
SIGNAL_PATIENCE: Final = 10.0


def journal(calls: Calls, queue: str, items: Sequence[JournalItem]) -> list[str]:
    def send(some: Sequence[JournalItem]) -> Sequence[str]:
        given = [(at, each) for at, item in enumerate(some, 1) for each in item.entries]
        added = {
            "of": [at for at, _ in given],
            "names": [each.name for _, each in given],
            "metas": [each.meta for _, each in given],
            "bodies": [tagged(each.body) for _, each in given],
        }
        answer: Sequence[str] = calls.answer("journal", queue=queue, **holds(some), **added, logs=logs_of(some))
        return answer

    return _while_held(items, PATIENCE, send)


def park(calls: Calls, queue: str, items: Sequence[Release]) -> list[str]:
    def fields(item: Release) -> dict[str, Any]:
        wait: Any = item.park
        told: dict[str, Any] = vars(wait) | {"after": list(wait.after), "entries": [entry_fields(each) for each in wait.entries]}
        return told | {"id": item.id, "fence": fence_of(item), "log": lines_text(item.log)}

    def send(some: Sequence[Release]) -> Sequence[str]:
        answer: Sequence[str] = calls.answer("park", queue=queue, items=json.dumps([fields(item) for item in some]), now=calls.now)
        return answer

    return _while_held(items, PATIENCE, send)


def entries(calls: Calls, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
    pages: Any = calls.answer("entries", ids=[item.id for item in items], after=[item.after for item in items])
    return [page and EntriesPage([_entry(*each) for each in page["entries"]], page["more"]) for page in pages]


def signal(calls: Calls, items: Sequence[Signal]) -> Sequence[Signalled]:
    def send(some: Sequence[Signal]) -> Sequence[str]:
        given = [entry_fields(item) | {"id": item.id, "queue": item.queue, "key": item.key} for item in some]
        answer: Sequence[str] = calls.answer("signal_jobs", items=json.dumps(given), now=calls.now)
        return ["held" if each.startswith("held ") else each for each in answer]

    answers = _while_held(items, SIGNAL_PATIENCE, send)
    if "held" in answers:
        message = "another transaction holds the job or its journal; the call can be made again"
        raise MillpondError("StoreBusy", message)
    found: list[Signalled] = []
    for answer in answers:
        status: Any
        status, id, *_ = answer.split(" ")
        found.append(Signalled(status, id or None))
    return found


def entry_fields(entry: NewEntry) -> dict[str, Any]:
    return {"name": entry.name, "meta": entry.meta, "body": tagged(entry.body)}


def _entry(n: int, name: str, meta: str, body: str | None) -> Entry:
    return Entry(n, name, meta, untagged(body) if body else None)


def _while_held(items: Sequence[Item], patience: float, send: Callable[[Sequence[Item]], Sequence[str]]) -> list[str]:
    """Sends again what another transaction holds."""
    outcomes = list(send(items)) if items else []
    until, pause = time.monotonic() + patience, 0.005
    while "held" in outcomes and time.monotonic() < until:
        time.sleep(pause)
        pause = min(pause * 2, 0.25)
        held = [at for at, outcome in enumerate(outcomes) if outcome == "held"]
        for at, outcome in zip(held, send([items[at] for at in held]), strict=True):
            outcomes[at] = outcome
    return outcomes
