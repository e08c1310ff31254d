"""Journals of jobs, and parks: contract/steps.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from millpond.contract import DEFAULTS
from millpond.durations import check_integer
from millpond.encoding import SAFE, Body
from millpond.errors import MillpondError
from millpond.ids import check_id
from millpond.names import check_key, check_queue

MOST_ENTRIES: Final[int] = DEFAULTS["steps"]["entries"]
"""Of a journal."""
MOST_BYTES: Final[int] = DEFAULTS["steps"]["bytes"]
"""Of the names, metas and bodies of a journal."""
PAGE: Final[int] = DEFAULTS["steps"]["page"]
"""Bytes of an answer of `entries`."""
MOST_PARENTS: Final[int] = DEFAULTS["bounds"]["parents"]["most"]


def _check_text(value: object, what: str, most: int) -> None:
    if isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value) and len(value.encode()) <= most:
        return
    raise MillpondError("InvalidOption", f"{what} is a text of at most {most} bytes of UTF-8, without a lone surrogate")


@dataclass(frozen=True)
class NewEntry:
    """`name`: `=` or `+` and the key of a step; or `!`, the name of a signal, `/` and a UUID. `meta`: JSON that the store does not read."""

    name: str
    meta: str = "{}"
    body: Body | None = None

    def __post_init__(self) -> None:
        _check_text(self.name, "the name of an entry", DEFAULTS["steps"]["name"])
        _check_text(self.meta, "the meta of an entry", DEFAULTS["steps"]["meta"])
        if self.name[:1] not in ("=", "+", "!"):
            raise MillpondError("InvalidName", f"{self.name!r}: the name of an entry begins with =, + or !")

    @property
    def size(self) -> int:
        """Its bytes, as the bounds of a journal count them."""
        body = self.body.body if self.body else b""
        return len(self.name.encode()) + len(self.meta.encode()) + len(body.encode() if isinstance(body, str) else body)


@dataclass(frozen=True)
class Entry:
    """`n`: its number. A later entry of the job has a higher one."""

    n: int
    name: str
    meta: str
    body: Body | None


@dataclass(frozen=True)
class EntriesFrom:
    """Asks for the entries of a job behind the one with the number `after`."""

    id: str
    after: int = 0

    def __post_init__(self) -> None:
        check_id(self.id)
        check_integer(self.after, "after", 0, SAFE)
        object.__setattr__(self, "id", self.id.lower())


@dataclass(frozen=True)
class EntriesPage:
    """`more`: there are further ones."""

    entries: Sequence[Entry]
    more: bool


@dataclass(frozen=True)
class Signal(NewEntry):
    """An entry for a live job, which is named by its id, or by its queue and key."""

    id: str | None = None
    queue: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name.startswith("!"):
            raise MillpondError("InvalidName", f"{self.name!r}: the name of a signal's entry begins with !")
        if self.id is not None and self.queue is None and self.key is None:
            check_id(self.id)
            object.__setattr__(self, "id", self.id.lower())
        elif self.id is None and self.queue is not None and self.key is not None:
            check_queue(self.queue)
            check_key(self.key)
        else:
            raise MillpondError("InvalidOption", "a signal names its job by an id, or by a queue and a key")


@dataclass(frozen=True)
class Signalled:
    """`ended`: the job has ended. `full`: its journal would outgrow a bound. `none`: there is no such job."""

    status: Literal["ok", "ended", "full", "none"]
    id: str | None


@dataclass(frozen=True)
class Park:
    """A job that waits without a worker. `until`: when it goes on at the latest, in ms since 1970; None: in 36,525 days. `signals`: how
    many the worker knows; if there are more, the job goes on at once. `after`: ids of the jobs for whose end it waits. `entries` are added
    to the journal first. `reason`: JSON that says what it waits for."""

    until: int | None = None
    signals: int = 0
    after: Sequence[str] = ()
    entries: Sequence[NewEntry] = ()
    reason: str = "{}"

    def __post_init__(self) -> None:
        _check_text(self.reason, "the reason of a park", DEFAULTS["steps"]["meta"])
        check_integer(self.signals, "signals", 0, SAFE)
        check_integer(len(self.after), "the number of ids in after", 0, MOST_PARENTS)
        if self.until is not None:
            check_integer(self.until, "until", 0, SAFE)
        for each in self.after:
            check_id(each)
        object.__setattr__(self, "after", tuple(each.lower() for each in self.after))
