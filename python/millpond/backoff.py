"""How long a failed job waits for its next attempt. Formula and cases: contract/vectors/backoff.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from millpond.contract import DEFAULTS
from millpond.durations import LONGEST, check_duration, check_integer, check_number
from millpond.errors import MillpondError

_DEFAULT: Final = DEFAULTS["queue"]["backoff"]


@dataclass(frozen=True)
class Backoff:
    """`base` and `max` in ms. A factor of 1 is a fixed delay."""

    base: int = _DEFAULT["base"]
    factor: float = _DEFAULT["factor"]
    max: int = _DEFAULT["max"]
    jitter: float = _DEFAULT["jitter"]

    def __post_init__(self) -> None:
        check_integer(self.base, "base", 0, LONGEST)
        check_integer(self.max, "max", 0, LONGEST)
        check_number(self.factor, "factor", 1, 100)
        check_number(self.jitter, "jitter", 0, 1)

    def delay(self, attempt: int, random: float) -> int:
        """ms after this attempt failed. `random`: from 0 to below 1."""
        if self.base == 0:
            return 0
        # A power past all numbers is past the longest delay as well.
        past = (attempt - 1) * math.log(self.factor) > 600
        delay = self.max if past else min(self.max, self.base * self.factor ** (attempt - 1))
        return math.floor(delay * (1 - self.jitter * random))


def backoff_of(options: object) -> Backoff:
    """The policy of `fixed`, `exponential`, or a mapping with `type` and any of `base factor max jitter`."""
    given = {"type": options} if isinstance(options, str) else options
    if not isinstance(given, Mapping) or given.get("type") not in ("fixed", "exponential"):
        raise MillpondError("InvalidOption", f"backoff is {options!r}; its type is fixed or exponential")
    settings = {
        name: check_duration(value, name) if name in ("base", "max") else value
        for name, value in given.items() if name != "type"
    }  # fmt: skip
    if unknown := settings.keys() - vars(Backoff()).keys():
        raise MillpondError("InvalidOption", f"backoff has no option {', '.join(map(repr, unknown))}")
    return Backoff(**settings | ({"factor": 1} if given["type"] == "fixed" else {}))
