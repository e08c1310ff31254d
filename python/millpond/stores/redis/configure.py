"""Settings of queues and limits of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from millpond.errors import MillpondError
from millpond.queues import LIMITS, Given, GroupLimits, SettingsReport
from millpond.stores.given import DEFAULTS, Settled, in_python, settle
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import pack_setting
from millpond.stores.wire import camel

_DEFAULTS: Final[Mapping[str, Any]] = in_python(DEFAULTS) | {"paused": False}


class Configurer:
    def __init__(self, connection: Connection, notifier: Notifier) -> None:
        self._connection, self._notifier = connection, notifier
        self._made: dict[str, dict[str, Any]] = {}
        """Settings that this client has made, in case the server loses them."""

    def configure(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Sequence[str]:
        settled = self._apply(queue, settings, by, clear)
        if by == "code":
            self._made[queue] = self._made.get(queue, {}) | dict(settings)
        applied = in_python(settled.apply)
        if "capacity" in applied:
            self._notifier.ring("room", queue)
        if applied.get("paused") is False or applied.keys() & LIMITS:
            self._notifier.ring("work", queue)
        return settled.overridden

    def settings(self, queue: str) -> SettingsReport | None:
        told = self._connection.script("settings", queue)
        if not told:
            return None
        code, operator, paused, grouped = told
        given = Given.from_texts(code, operator)
        values = {**DEFAULTS, **given.code, **given.operator, "paused": paused == 1, "grouped": grouped == 1}
        return SettingsReport(given.code, given.operator, values)

    def forget(self, queue: str) -> None:
        """It was removed."""
        self._made.pop(queue, None)

    def restore(self, queue: str) -> None:
        """The server may have lost the queue's settings. Where they cannot be set now, the call that found that has done its work all the same."""
        made = self._made.get(queue, {})
        if any(value != _DEFAULTS.get(name) for name, value in made.items()):
            with suppress(MillpondError):
                self._apply(queue, made, "code", ())

    def _apply(self, queue: str, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Settled:
        """What comes into effect depends on what others have given. The script changes nothing where that is not what was thought here."""
        known = ("", "")
        while True:
            settled = settle(Given.from_texts(*known), settings, by, clear)
            items = [
                item for name, value in in_python(settled.apply).items() for item in (camel(name), pack_setting(value))
            ]
            kept = self._connection.script("configure", queue, ["\n".join(known), *settled.given.texts()], items)
            if not kept:
                return settled
            known = (kept[0].decode(), kept[1].decode())

    def limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        own = limits and [limits.running or False, list(vars(limits.rate).values()) if limits.rate else False, limits.weight]
        self._connection.script("limit-group", queue, [group, own])
        self._notifier.ring("work", queue)
