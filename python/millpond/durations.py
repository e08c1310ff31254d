"""Durations: milliseconds, or a text such as `250ms`, `1.5s`, `5m`, `1h` or `7d`. Fractions of a ms are rounded."""

from __future__ import annotations

import math
import re
from typing import Final

from millpond.contract import bound
from millpond.errors import MillpondError

LONGEST: Final = bound("delay")[1]
"""The longest span that a library takes: contract/operations.md, "Bounds"."""

UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TEXT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")


def check_duration(value: object, what: str, least: int = 0, most: int = LONGEST) -> int:
    match = _TEXT.fullmatch(value) if isinstance(value, str) and len(value) <= 32 else None
    ms = float(match[1]) * UNITS[match[2]] if match else value
    return check_integer(math.floor(ms + 0.5) if isinstance(ms, float) and math.isfinite(ms) else ms, what, least, most)


def check_integer(value: object, what: str, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise MillpondError("InvalidOption", f"{what} is {value!r}; it is a whole number from {least} to {most}")


def check_number(value: object, what: str, least: float, most: float) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise MillpondError("InvalidOption", f"{what} is {value!r}; it is a number from {least} to {most}")
