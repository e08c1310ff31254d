"""Who has set what: contract/operations.md, "configure". Names and values are in the contract's form, as in the JSON that stores keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from millpond import contract
from millpond.backoff import Backoff
from millpond.queues import Given
from millpond.rate import Rate
from millpond.stores.wire import snake, to_json

_NO_SIDES: Final = ("paused", "grouped")
DEFAULTS: Final[Mapping[str, Any]] = {name: value for name, value in contract.DEFAULTS["queue"].items() if name not in _NO_SIDES}


@dataclass(frozen=True)
class Settled:
    """`apply`: what comes into effect. `overridden`: what an operator's other value keeps out of effect."""

    apply: Mapping[str, Any]
    given: Given
    overridden: Sequence[str]


def settle(before: Given, settings: Mapping[str, Any], by: str, clear: Sequence[str]) -> Settled:
    """`settings` and `clear` as in Python."""
    code, operator = dict(before.code), dict(before.operator)
    apply: dict[str, Any] = {}
    overridden: list[str] = []
    for name in DEFAULTS:
        if snake(name) in clear and name in operator:
            del operator[name]
            apply[name] = code.get(name, DEFAULTS[name])
    for name, value in json.loads(to_json(settings) or "{}").items():
        if name not in DEFAULTS:
            apply[name] = value
            continue
        (operator if by == "operator" else code)[name] = value
        if by == "operator" or name not in operator:
            apply[name] = value
        elif operator[name] != value:
            overridden.append(snake(name))
    return Settled(apply, Given(code, operator), sorted(overridden))


def in_python(apply: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the contract's form with the names and classes of Python."""
    kinds = {"rate": Rate, "groupRate": Rate, "backoff": Backoff}
    return {snake(name): kinds[name](**value) if name in kinds and value else value for name, value in apply.items()}
