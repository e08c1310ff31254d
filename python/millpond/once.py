"""What a key does beyond one live job: contract/operations.md, "Once for a while"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from millpond.contract import bound
from millpond.durations import check_integer

NEVER: Final = 2**48 - 1
"""`due_at` of a follower in the stores: no time brings it about."""


@dataclass(frozen=True)
class Unique:
    """The key is remembered for so many ms after the job ended, or after it was pushed."""

    ms: int
    since: Literal["end", "push"] = "end"

    def __post_init__(self) -> None:
        check_integer(self.ms, "unique", 1, bound("delay")[1])

    @property
    def stored(self) -> int:
        """As SQL and Lua keep it: below 0, after the push."""
        return -self.ms if self.since == "push" else self.ms

    def until(self, pushed_at: int, ended_at: int) -> int:
        return (pushed_at if self.since == "push" else ended_at) + self.ms


def unique_from(stored: int | None) -> Unique | None:
    if stored is None:
        return None
    return Unique(-stored, "push") if stored < 0 else Unique(stored)


@dataclass(frozen=True)
class Once:
    """`replace`: a scheduled or waiting job with the key gets this push's data and due time, at most `max_wait` ms after its first push.
    `follow`: while the job with the key runs, this one is kept, and is due when that one ends."""

    unique: Unique | None = None
    replace: bool = False
    max_wait: int | None = None
    follow: bool = False

    def __post_init__(self) -> None:
        if self.max_wait is not None:
            check_integer(self.max_wait, "max_wait", *bound("delay"))

    def to_json(self) -> dict[str, Any]:
        unique = self.unique and {"for": self.unique.ms, "since": self.unique.since}
        return {"unique": unique, "replace": self.replace, "maxWait": self.max_wait, "follow": self.follow}


def due_of(delay: int | None, run_at: int | None, once: Once | None, pushed_at: int, now: int) -> int:
    """When a job is due that was first pushed at `pushed_at`."""
    due_at = now + (delay or 0) if run_at is None else run_at
    if once is not None and once.max_wait is not None:
        due_at = min(due_at, pushed_at + once.max_wait)
    return max(now, due_at)
