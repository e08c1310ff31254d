"""Reads the contract's vectors, and their notation for values that JSON has not."""

from __future__ import annotations

import array
import base64
import json
import re
from datetime import datetime
from typing import Any

from millpond.contract import CONTRACT
from millpond.encoding import SAFE

Case = dict[str, Any]


class LeftOut(Exception):
    """Python has no such value, or does not tell it from another one."""


def load(name: str) -> Any:
    return json.loads((CONTRACT / "vectors" / f"{name}.json").read_text("utf-8"))


def label(case: object) -> str:
    return str(case.get("about", case.get("name"))) if isinstance(case, dict) else ""


def _circular(_: object) -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def _circular_list(_: object) -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def _nest(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def _bigint(text: str) -> int:
    if abs(int(text)) <= SAFE:
        raise LeftOut("Python has one type of integers")
    return int(text)


def _date(text: str) -> datetime:
    if text == "never":
        raise LeftOut("a datetime is always a point in time")
    return datetime.fromisoformat(text)


_MAKERS: dict[str, Any] = {
    "$bytes": base64.b64decode,
    "$bigint": _bigint,
    "$number": float,
    "$units": lambda units: bytes.fromhex("".join(unit.zfill(4) for unit in units)).decode("utf-16-be", "surrogatepass"),
    "$date": _date,
    "$repeat": lambda given: given[0] * given[1],
    "$nest": _nest,
    "$parse": json.loads,
    "$entries": lambda pairs: {value_of(key): value_of(each) for key, each in pairs},
    "$function": lambda _: len,
    "$symbol": lambda _: object(),
    "$set": lambda _: {1},
    "$regexp": lambda _: re.compile("a"),
    "$error": lambda _: ValueError("no"),
    "$floats": lambda _: array.array("d", [1.5]),
    "$circular": _circular,
    "$circularList": _circular_list,
}


def value_of(notation: Any) -> Any:
    if isinstance(notation, list):
        return [value_of(each) for each in notation]
    if not isinstance(notation, dict):
        return notation
    name = next(iter(notation), "")
    if not name.startswith("$"):
        return {key: value_of(each) for key, each in notation.items()}
    if name not in _MAKERS:
        raise LeftOut(f"Python has no {name[1:]}")
    return _MAKERS[name](notation[name])
