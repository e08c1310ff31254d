"""Rates of starts. Formulas: contract/operations.md, "Rates"; cases: contract/vectors/rate.json. `full` and `now` are µs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from millpond.contract import DEFAULTS, bound
from millpond.durations import UNITS, check_duration, check_integer
from millpond.errors import MillpondError

MOST_STARTS: Final = bound("rateCount")[1]
_BURST_TIME: Final = DEFAULTS["rate"]["burstTime"]
_TEXT = re.compile(r"([0-9]{1,9})/(.+)")


@dataclass(frozen=True)
class Rate:
    """`count` starts per `per` ms. `burst`: how many may start at once after a while without any; None: those of 100 ms."""

    count: int
    per: int
    burst: int | None = None

    def __post_init__(self) -> None:
        check_integer(self.per, "per", *bound("ratePer"))
        check_integer(self.count, "count", 1, min(MOST_STARTS, self.per * 1_000))
        if self.burst is not None:
            check_integer(self.burst, "burst", 1, min(MOST_STARTS, bound("rateBurstTime")[1] // self.step))

    @property
    def step(self) -> int:
        return -(-self.per * 1_000 // self.count)

    @property
    def most_at_once(self) -> int:
        return max(1, self.count * _BURST_TIME // self.per) if self.burst is None else self.burst

    def bounded(self, full: int, full_cost: int, now: int) -> int:
        """What `full` counts as: a changed rate or clock may have left it further ahead than a start by this rate does."""
        return min(full, now + max(self.most_at_once, full_cost) * self.step)

    def allowed_from(self, full: int, cost: int) -> int:
        return full - (max(self.most_at_once, cost) - cost) * self.step

    def started(self, full: int, now: int, cost: int) -> int:
        return max(full, now) + cost * self.step

    def released(self, full: int, now: int, cost: int, started_at: int) -> int:
        return full - min(cost * self.step, max(0, started_at + cost * self.step - now))


def rate_of(given: object) -> Rate:
    """The rate of a text such as `100/s` or `5/10s`, or of a mapping of `count`, `per` and perhaps `burst`."""
    if isinstance(given, str) and (match := _TEXT.fullmatch(given)):
        return Rate(int(match[1]), check_duration(match[2] if match[2][0].isdigit() else f"1{match[2]}", "per", 1))
    if isinstance(given, Mapping) and {"count", "per"} <= given.keys() <= {"count", "per", "burst"}:
        return Rate(**given)
    raise MillpondError("InvalidOption", f"rate is {given!r}; it is a text such as 100/s, or count, per and burst")
