"""Durations: whole milliseconds, or a text such as `250ms`, `30s`, `5m`, `1h` or `7d`."""

from __future__ import annotations

import re
from typing import Final

from millpond.errors import MillpondError

LONGEST: Final = 8_640_000_000_000_000
"""The most ms that any store keeps: contract/operations.md, "Bounds"."""

_TEXT = re.compile(r"([0-9]{1,16})(ms|s|m|h|d)")
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def check_duration(value: object, what: str, least: int = 0) -> int:
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    ms = int(match[1]) * _UNITS[match[2]] if match else value
    return check_integer(ms, what, least, LONGEST)


def check_integer(value: object, what: str, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise MillpondError("InvalidOption", f"{what} is {value!r}; it is a whole number from {least} to {most}")
