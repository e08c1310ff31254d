"""Queues: settings, limits, and what they count. Rules: contract/operations.md, "configure" and "Limits and turns"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict

from millpond.backoff import Backoff
from millpond.durations import check_number
from millpond.errors import MillpondError
from millpond.histogram import Buckets
from millpond.jobs import State, check_fields
from millpond.rate import Rate

Metric = Literal["wait", "run"]
METRICS: Final[tuple[Metric, ...]] = ("wait", "run")


class Settings(TypedDict, total=False):
    """A queue's settings; what is not there stays as it is. None: no capacity, timeout or limit."""

    capacity: int | None
    keep_done: int
    keep_dead: int
    paused: bool
    attempts: int
    backoff: Backoff
    lease: int
    timeout: int | None
    running: int | None
    rate: Rate | None
    grouped: Literal[True]
    group_running: int | None
    group_rate: Rate | None


LIMITS: Final = ("running", "rate", "grouped", "group_running", "group_rate")
UNLIMITED: Final = frozenset(("capacity", "timeout", "running", "rate", "group_running", "group_rate"))


def check_settings(settings: Mapping[str, Any]) -> None:
    check_fields(settings)
    wrong = settings.keys() - Settings.__annotations__.keys()
    wrong |= {name for name, value in settings.items() if value is None and name not in UNLIMITED}
    if wrong or settings.get("grouped") is False:
        raise MillpondError("InvalidOption", f"these settings are unknown or impossible: {settings!r}")


@dataclass(frozen=True)
class Given:
    """What code and an operator have given of a queue's settings, in the contract's form."""

    code: Mapping[str, Any] = field(default_factory=dict)
    operator: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_texts(code: str | bytes | None, operator: str | bytes | None) -> Given:
        return Given(json.loads(code or "{}"), json.loads(operator or "{}"))

    def texts(self) -> tuple[str, str]:
        """Empty: nothing."""
        return json.dumps(self.code) if self.code else "", json.dumps(self.operator) if self.operator else ""


@dataclass(frozen=True)
class SettingsReport(Given):
    """`values`: what is in effect of every setting. All in the contract's form."""

    values: Mapping[str, Any] = field(default_factory=dict)


class Lane(TypedDict):
    """Slots that a worker keeps for jobs of this priority and higher ones. In the contract's form."""

    minPriority: int
    reserve: int


@dataclass(frozen=True)
class WorkerBeat:
    """A worker, as its process tells of it. One that claims from several queues has an entry for each. `lanes`: the highest first."""

    id: str
    queue: str
    host: str
    pid: int
    slots: int
    busy: int
    lanes: Sequence[Lane] | None = None

    def __post_init__(self) -> None:
        check_fields({"queue": self.queue})


@dataclass(frozen=True, kw_only=True)
class WorkerRecord:
    """`since`: first heard of. `seen`: last heard of. `silence`: ms since then. `lanes` None: none, or its process does not tell."""

    id: str
    queue: str
    host: str
    pid: int
    slots: int
    busy: int
    since: int
    seen: int
    silence: int
    lanes: Sequence[Lane] | None = None


@dataclass(frozen=True)
class GroupLimits:
    """A group's own. None: as the queue has it for its groups. `weight`: its share of the turns."""

    running: int | None = None
    rate: Rate | None = None
    weight: float = 1

    def __post_init__(self) -> None:
        check_fields(vars(self))
        check_number(self.weight, "weight", 5e-324, 1000)


@dataclass(frozen=True)
class Slice:
    """Measured times of a queue, counted in buckets."""

    queue: str
    priority: int
    metric: Metric
    buckets: Buckets


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    running: int | None
    rate: Rate | None
    grouped: bool
    group_running: int | None
    group_rate: Rate | None


@dataclass(kw_only=True)
class QueueStats:
    """`overrides`: what an operator has set, in the contract's names. `last_claim`: ms since a worker last asked for jobs; None: never.
    `next_start`: ms until a start of cost 1 is allowed; None: as many run as may."""

    queue: str
    capacity: int | None
    paused: bool
    counts: dict[State, int]
    totals: dict[str, int]
    overrides: Mapping[str, Any]
    last_claim: int | None
    oldest_waiting: int | None
    limits: QueueLimits | None
    next_start: int | None
    groups_at_limit: int
    groups_held: int
    histograms: list[Slice]


@dataclass(frozen=True, kw_only=True)
class Group:
    """`next_start`: ms until its first job may start; None: as many run as may, or none waits."""

    group: str
    limits: GroupLimits | None
    waiting: int
    running: int
    next_start: int | None
