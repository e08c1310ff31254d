"""Schedules, as stores keep them. A store compares times; the program that sweeps computes them: contract/worker.md, "Sweeps".

Times are ms since 1970, spans are ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from millpond.contract import DEFAULTS
from millpond.encoding import Body
from millpond.errors import MillpondError
from millpond.jobs import NewJob, Pushed, check_fields
from millpond.names import is_name

Missed = Literal["once", "skip", "all"]
DeclareOutcome = Literal["created", "changed", "same", "kept", "unknown"]

MOST_DUE: Final[int] = DEFAULTS["schedule"]["due"]
STILL_DECLARED: Final[int] = DEFAULTS["schedule"]["declared"]


@dataclass(frozen=True, kw_only=True)
class ScheduledJob:
    """What a schedule pushes. `attempts` and `timeout` None: the queue's."""

    queue: str
    data: Body
    priority: int = DEFAULTS["job"]["priority"]
    key: str | None = None
    group: str | None = None
    cost: int = DEFAULTS["job"]["cost"]
    attempts: int | None = None
    timeout: int | None = None

    def __post_init__(self) -> None:
        check_fields(vars(self))


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """`version` differs whenever anything declared differs. `start`, `until`: the first and the last moment at which it may fire; the
    contract's `from` and `until`. `again`: the process has declared it before, so it is not made again."""

    name: str
    version: str
    when: str
    tz: str = "UTC"
    missed: Missed = "once"
    jitter: int = 0
    start: int | None = None
    until: int | None = None
    paused: bool = False
    again: bool = False
    job: ScheduledJob

    def __post_init__(self) -> None:
        check_schedule(self.name)


@dataclass(frozen=True, kw_only=True)
class ScheduleRecord:
    """`planned` False: nobody has computed when it fires since `next_at`. `next_at` None: it never fires again."""

    name: str
    version: str
    when: str
    tz: str
    missed: Missed
    jitter: int
    start: int | None
    until: int | None
    paused: bool
    planned: bool
    next_at: int | None
    changed_at: int
    declared: bool
    last_at: int | None
    job: ScheduledJob


@dataclass(frozen=True)
class DueSchedules:
    """Longest due first. `now`: the store's time of the sweep."""

    now: int
    due: Sequence[ScheduleRecord]


@dataclass(frozen=True, kw_only=True)
class Firing:
    """`expected`: its next time, as the sweep told. `next`: the time after; None: it does not fire again."""

    name: str
    version: str
    expected: int
    next: int | None
    jobs: Sequence[NewJob] = ()


@dataclass(frozen=True)
class Fired:
    """`stale`, `full`: nothing changed."""

    status: Literal["fired", "stale", "full"]
    jobs: Sequence[Pushed] | None = None


def check_schedule(name: str) -> str:
    if is_name(name):
        return name
    rule = "a schedule's name has 1 to 128 of A–Z a–z 0–9 _ - . : / and begins with a letter or digit"
    raise MillpondError("InvalidName", f"{name!r}: {rule}")


def timing_of(declared: Declaration) -> Mapping[str, Any]:
    """Its fields with the contract's names, but for the job."""
    return {"from" if name == "start" else name: value for name, value in vars(declared).items() if name != "job"}
