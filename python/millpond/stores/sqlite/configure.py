from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from millpond.queues import Given, SettingsReport
from millpond.stores.given import settle
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import to_json

GROUPING: Final = ("count", "count_left", "count_removed", "adopt_groups", "adopt")
LIMITS: Final = {"paused", "running", "rate", "grouped", "groupRunning", "groupRate"}
"""What claims and bells look at."""


def configure(tx: Transaction, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> tuple[Sequence[str], bool]:
    """What an operator's value keeps out of effect; and whether it has made triggers, which changes the schema."""
    settled = settle(_given(tx, queue), settings, by, clear)
    changes_schema = apply(tx, queue, settled.apply)
    code, operator = settled.given.texts()
    tx.changes("configure/give", queue=queue, code=code or None, operator=operator or None)
    if LIMITS & settled.apply.keys():
        tx.count(queue, "sign", "limits")
    return settled.overridden, changes_schema


def settings(tx: Transaction, queue: str) -> SettingsReport | None:
    row = tx.row("configure/settings", queue=queue)
    if row is None:
        return None
    given = Given.from_texts(row["code"], row["operator"])
    return SettingsReport(given.code, given.operator, json.loads(row["values"]))


def _given(tx: Transaction, queue: str) -> Given:
    return settings(tx, queue) or Given()


def apply(tx: Transaction, queue: str, settings: Mapping[str, Any]) -> bool:
    """Whether it has made triggers, which changes the schema."""
    before = tx.queue(queue)
    tx.changes("configure/configure", queue=queue, settings=to_json(settings))
    tx.reread()
    known = tx.made_queue(queue)
    becomes_grouped = known.grouped and not (before and before.grouped)
    if becomes_grouped:
        for name in GROUPING:
            tx.changes(f"limits/{name}", queue=queue)
        tx.line_up(queue)
    if known.grouped and (before is None or known.row["limits"] != before.row["limits"]):
        tx.changes("limits/touch", queue=queue)
    return becomes_grouped


