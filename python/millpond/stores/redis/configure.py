"""Settings of queues and limits of groups, in all partitions that they concern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from millpond.errors import MillpondError
from millpond.queues import LIMITS, Given, GroupLimits, SettingsReport
from millpond.stores.given import DEFAULTS, Settled, in_python, settle
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, group_index
from millpond.stores.redis.shares import check_shared, rate_list, settings_of, share_of
from millpond.stores.redis.wire import pack_setting
from millpond.stores.wire import camel

_DEFAULTS: Final[Mapping[str, Any]] = in_python(DEFAULTS) | {"paused": False}

T = TypeVar("T")


@dataclass(frozen=True)
class _Sent:
    turn: int
    """See `turn_of` of limits.lua."""
    paused: bool
    grouped: bool
    kept: tuple[str, str] | None
    """What code and an operator have given, if it is not what the call says; then nothing was changed."""


class Configurer:
    def __init__(self, registry: Registry, notifier: Notifier) -> None:
        self._connection, self._registry, self._notifier = registry.connection, registry, notifier
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
        if queue not in self._registry.all():
            return None
        told = self._connection.on_part("settings", self._registry.parts(queue)[0])
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
        self._registry.register(queue)
        parts = self._registry.parts(queue)
        check_shared(settings, ("capacity", "running", "rate"), len(parts))
        return self._on_all(parts, lambda: self._settle(parts, settings, by, clear))

    def _on_all(self, parts: Sequence[Part], send: Callable[[], T]) -> T:
        """Once more where a partition was not listed yet: a removal may have dropped what others had taken just before."""
        confirmed = self._registry.confirmed
        sent = send()
        return send() if len(parts) > 1 and self._registry.confirmed != confirmed else sent

    def _settle(self, parts: Sequence[Part], settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Settled:
        """What comes into effect depends on what others have given. The script changes nothing where that is not what was thought here.
        The other partitions get all that then holds in the first one."""
        first, *others = parts
        turn = 0 if others else None
        known = ("", "")
        while True:
            settled = settle(Given.from_texts(*known), settings, by, clear)
            head = ["\n".join(known), *settled.given.texts(), turn]
            sent = self._send(first, settings_of(in_python(settled.apply), first.index, len(parts)), head)
            if sent.kept is None:
                break
            known = sent.kept
        whole = in_python({**DEFAULTS, **settled.given.code, **settled.given.operator}) | {"paused": sent.paused}
        if sent.grouped:
            whole["grouped"] = True
        for part in others:
            self._send(part, settings_of(whole, part.index, len(parts)), [None, *settled.given.texts(), sent.turn])
        return settled

    def _send(self, part: Part, settings: Mapping[str, Any], head: Sequence[object] = ()) -> _Sent:
        items = [item for name, value in settings.items() for item in (camel(name), pack_setting(value))]
        listed, turn, paused, grouped, *kept = self._connection.on_part("configure", part, head, items)
        if not kept and not listed:
            self._registry.confirm(part)
        return _Sent(turn, paused == 1, grouped == 1, (kept[0].decode(), kept[1].decode()) if kept else None)

    def limit_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        """A group's jobs are in one partition. Those without a group are in all of them, which share their limits."""
        self._registry.register(queue)
        parts = self._registry.parts(queue)
        home, count = group_index(group, len(parts)), 1 if group else len(parts)
        check_shared(vars(limits) if limits else {}, ("running", "rate"), count)

        def send() -> None:
            turn = 0 if not group and len(parts) > 1 else None
            for part in parts:
                if group and part.index != home:
                    self._send(part, {"grouped": True})
                    continue
                index = 0 if group else part.index
                rate = rate_list(limits.rate, index, count) if limits and limits.rate else False
                own = limits and [share_of(limits.running, index, count) or False, rate, limits.weight]
                listed, taken = self._connection.on_part("limit-group", part, [group, own, turn])
                # Only the first partition gives one: what a later change has overtaken elsewhere tells none.
                turn = taken if turn == 0 else turn
                if not listed:
                    self._registry.confirm(part)

        self._on_all(parts, send)
        self._notifier.ring("work", queue)
