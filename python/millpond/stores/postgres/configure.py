from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from millpond.queues import GroupLimits, SettingsReport
from millpond.stores.postgres.calls import Calls
from millpond.stores.wire import camel, snake, to_json


def configure(calls: Calls, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
    given = to_json(settings) or "{}"
    names = calls.answer("configure", queue=queue, settings=given, by=by, clear=[camel(name) for name in clear])
    return [snake(name) for name in names]


def settings(calls: Calls, queue: str) -> SettingsReport | None:
    told = calls.answer("settings", queue=queue)
    return told and SettingsReport(**told)


def limit_group(calls: Calls, queue: str, group: str, limits: GroupLimits | None) -> None:
    calls.rows("limit_group", queue=queue, group=group, limits=to_json(limits))
