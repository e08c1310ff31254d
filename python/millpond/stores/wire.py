"""Forms on the wire that stores have in common: names in camelCase, and limits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from millpond.contract import DEFAULTS
from millpond.rate import Rate

T = TypeVar("T")


def with_lines(log: Sequence[str], added: Sequence[str]) -> list[str]:
    """A job's log once lines were added: contract/operations.md, "The log of a job"."""
    limits, size, kept = DEFAULTS["log"], 0, list(dict.fromkeys((*log, *added)))
    lines: list[str] = []
    for line in reversed(kept[-limits["lines"] :]):
        size += len(line.encode()) + 1
        if size > limits["bytes"]:
            break
        lines.insert(0, line)
    return lines


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", name)


def to_json(given: object) -> str | None:
    """A mapping or a value of a class, with the contract's names."""
    if given is None:
        return None
    fields = given if isinstance(given, Mapping) else vars(given)
    return json.dumps({camel(name): value for name, value in fields.items()}, default=vars)


def read(kind: type[T], fields: Mapping[str, Any], **more: Any) -> T:
    """A value of a data class, from fields with the contract's names and `more`. A newer store may tell further ones."""
    given = {snake(name): value for name, value in fields.items()} | more
    rates = {name: Rate(**given[name]) for name in ("rate", "group_rate") if isinstance(given.get(name), dict)}
    known: Any = kind
    return kind(**{name: value for name, value in (given | rates).items() if name in known.__dataclass_fields__})
