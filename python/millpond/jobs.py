"""Jobs, on their way into a store and out of it. Times are ms since 1970, spans are ms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from millpond.contract import DEFAULTS, bound
from millpond.durations import check_integer
from millpond.encoding import SAFE, Body, well_formed
from millpond.errors import MillpondError
from millpond.ids import check_id
from millpond.names import check_key, check_queue
from millpond.once import Once, Unique
from millpond.steps import NewEntry, Park

if TYPE_CHECKING:
    from millpond.schedules import DueSchedules

State = Literal["blocked", "scheduled", "waiting", "running", "done", "dead", "cancelled"]
STATES: Final[tuple[State, ...]] = get_args(State)
LIVE: Final = STATES[:4]
FINAL: Final = STATES[4:]
OnDead = Literal["cancel", "run"]
Outcome = Literal["ok", "stale"]
JournalOutcome = Literal["ok", "stale", "full", "held"]
ReleaseOutcome = Literal["ok", "stale", "full", "held"]
"""`full`: the journal would outgrow a bound, `held`, of PostgreSQL alone: another transaction has it. Nothing was changed."""
FailOutcome = Literal["retry", "dead", "stale"]
ExtendOutcome = Literal["ok", "held", "stale", "cancelled"]
UpdateOutcome = Literal["updated"] | State | None
RestoreOutcome = Literal["restored", "existing"]
BellKind = Literal["work", "room", "finished", "cancelled"]
BELL_KINDS: Final[tuple[BellKind, ...]] = get_args(BellKind)

LONGEST_RUN: Final = bound("timeout")[1]
MOST_RUNNING: Final = bound("running")[1]
_BOUNDS: Final = {
    "priority": bound("priority"), "delay": bound("delay"), "run_at": bound("runAt"), "cost": bound("cost"),
    "attempts": bound("attempts"), "timeout": bound("timeout"), "lease": bound("lease"), "capacity": bound("capacity"),
    "keep_done": bound("keep"), "keep_dead": bound("keep"), "running": bound("running"), "group_running": bound("running"),
    "fence": (0, SAFE), "pause": bound("pause"),
}  # fmt: skip
_CHECKS: Final[dict[str, Callable[[Any], object]]] = {
    "id": check_id, "queue": check_queue, "key": check_key, "group": lambda value: check_key(value, "group"),
    "trace": lambda value: _check_trace(value),
}  # fmt: skip


def check_fields(fields: Mapping[str, Any]) -> None:
    """Those that have bounds. Errors: `InvalidName`, `InvalidOption`."""
    for name, value in fields.items():
        if name in _BOUNDS and value is not None:
            check_integer(value, name, *_BOUNDS[name])
        elif name in _CHECKS and value is not None:
            _CHECKS[name](value)


def check_parents(after: Sequence[str], part_of: str | None) -> None:
    """Errors: `InvalidName`, `InvalidOption`."""
    if isinstance(after, str):
        raise MillpondError("InvalidOption", "after is a list of ids")
    check_integer(len(after), "the number of ids in after", *bound("parents"))
    for each in after if part_of is None else [*after, part_of]:
        check_id(each)


def _check_trace(value: str) -> None:
    if not (1 <= len(value) <= 512 and value.isascii() and value.isprintable()):
        raise MillpondError("InvalidOption", f"trace is {value!r}; it is 1 to 512 printable ASCII characters")


@dataclass(frozen=True)
class NewJob:
    """A job to push. `attempts` and `timeout` None: the queue's. `fresh`: the id was made for this very push. `after`: ids of the jobs that
    it waits for; `on_dead`: what becomes of it when one of them ends otherwise than done. `part_of`: the id of a live job; every job that
    still waits for that one waits for this one too."""

    id: str
    queue: str
    data: Body
    priority: int = DEFAULTS["job"]["priority"]
    delay: int | None = None
    run_at: int | None = None
    key: str | None = None
    group: str | None = None
    cost: int = DEFAULTS["job"]["cost"]
    attempts: int | None = None
    timeout: int | None = None
    trace: str | None = None
    fresh: bool = False
    once: Once | None = None
    after: Sequence[str] = ()
    on_dead: OnDead = "cancel"
    part_of: str | None = None

    def __post_init__(self) -> None:
        check_fields(vars(self))
        check_parents(self.after, self.part_of)
        if self.on_dead not in get_args(OnDead):
            raise MillpondError("InvalidOption", f"on_dead is {self.on_dead!r}; it is cancel or run")
        if self.after and self.once is not None and (self.once.follow or self.once.replace):
            raise MillpondError("InvalidOption", "a job that waits for others neither replaces nor follows one that has its key")
        if self.once is not None and self.key is None:
            raise MillpondError("InvalidOption", "once needs a key")
        object.__setattr__(self, "id", self.id.lower())
        object.__setattr__(self, "after", tuple(each.lower() for each in self.after))
        object.__setattr__(self, "part_of", self.part_of and self.part_of.lower())


@dataclass(frozen=True)
class Pushed:
    """`parent`: of an `orphan`, the job that is not there. `withheld`: another job of a push with `whole` could not be stored."""

    status: Literal["pushed", "existing", "replaced", "full", "orphan", "held", "withheld", "failed"]
    id: str
    error: MillpondError | None = None
    parent: str | None = None


@dataclass(frozen=True)
class Relatives:
    """A job's place in its graph. `gone`: of a live job, the parents that are gone. `more`: there are more parents or children."""

    queue: str
    state: State
    on_dead: OnDead
    parents: Sequence[str]
    gone: Sequence[str]
    children: Sequence[str]
    more: bool


@dataclass(frozen=True, kw_only=True)
class Job:
    id: str
    attempt: int
    attempts: int
    priority: int
    group: str | None
    key: str | None
    timeout: int | None
    trace: str | None
    pushed_at: int
    due_at: int
    data: Body


@dataclass(frozen=True, kw_only=True)
class ClaimedJob(Job):
    """`journal`: how many entries its journal has; None: it has none."""

    fence: int
    journal: int | None = None


@dataclass(frozen=True)
class Claimed:
    """`limited`: jobs that are claimed before they can run take slots or starts from others."""

    now: int
    lease: int
    retry_after: int | None
    limited: bool
    jobs: list[ClaimedJob]


@dataclass(frozen=True)
class Held:
    """A claim that its worker states. `key`, `group`: the job's, which spare Redis a search if the queue has partitions."""

    id: str
    fence: int
    key: str | None = field(default=None, kw_only=True)
    group: str | None = field(default=None, kw_only=True)
    log: Sequence[str] = field(default=(), kw_only=True)
    """Lines for the job's log: contract/operations.md, "The log of a job"."""

    def __post_init__(self) -> None:
        check_fields({name: value for name, value in vars(self).items() if name != "delay" or value != "backoff"})
        object.__setattr__(self, "id", self.id.lower())


@dataclass(frozen=True)
class JobError:
    code: str
    name: str
    message: str
    stack: str | None = None

    def __post_init__(self) -> None:
        # UTF-8 and MessagePack carry no half of a surrogate pair.
        for name, value in list(vars(self).items()):
            if value is not None:
                object.__setattr__(self, name, well_formed(value))

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in vars(self).items() if value is not None})

    @staticmethod
    def of(fields: object) -> JobError:
        if not isinstance(fields, Mapping):
            return UNREADABLE
        code, name, message, stack = (fields.get(field) for field in ("code", "name", "message", "stack"))
        return JobError(str(code), str(name), str(message), None if stack is None else str(stack))

    @staticmethod
    def from_json(text: str) -> JobError:
        try:
            return JobError.of(json.loads(text))
        except ValueError:
            return UNREADABLE


UNREADABLE: Final = JobError("PayloadNotDecodable", "MillpondError", "The stored error cannot be read.")


@dataclass(frozen=True)
class Completion(Held):
    result: Body | None = None


@dataclass(frozen=True, kw_only=True)
class Failure(Held):
    """`delay` in ms; `backoff`: by the queue's policy; None: no further attempt."""

    error: JobError
    delay: int | Literal["backoff"] | None


@dataclass(frozen=True)
class Release(Held):
    """`pause`: ms for which no job of its group starts; of the queue, if the job has no group or groups take no turns."""

    pause: int = 0
    park: Park | None = None
    """The job is not given back, but waits for something."""


@dataclass(frozen=True)
class JournalItem(Held):
    """Entries that a claim adds to the journal of its job."""

    entries: Sequence[NewEntry] = ()


@dataclass(frozen=True)
class Extension(Held):
    progress: Body | None = None


@dataclass(frozen=True)
class Lost:
    id: str
    queue: str
    attempt: int
    state: Literal["waiting", "dead"]


@dataclass(frozen=True)
class Requeued:
    """`requeued`: how many jobs wait again. `now`: the store's time of the call."""

    requeued: int
    now: int


@dataclass(frozen=True)
class BulkChange:
    """What `bulk` does to a job. `priority` and `run_at`: of an update."""

    kind: Literal["requeue", "cancel", "remove", "update"]
    priority: int | None = None
    run_at: int | None = None


@dataclass
class BulkStep:
    """How many jobs were looked at, passed and were changed; of a count, some of them; where to go on, None: the list ended."""

    looked: int
    matched: int
    changed: int
    sample: Sequence[str]
    next: str | None
    now: int


@dataclass
class Swept:
    """`next_due`: ms until the next scheduled job is due, 0 if one is overdue, or until the next schedule fires. `more`: there may be more
    to do at once. `schedules`: those that are due, for `fire`."""

    lost: list[Lost] = field(default_factory=list)
    promoted: int = 0
    expired: int = 0
    more: bool = False
    next_due: int | None = None
    queues: int = 0
    schedules: DueSchedules | None = None


@dataclass(frozen=True, kw_only=True)
class Record(Job):
    """All there is to know about a job."""

    queue: str
    state: State
    fence: int
    cost: int
    started_at: int | None
    finished_at: int | None
    worker: str | None
    progress: Body | None
    result: Body | None
    error: JobError | None
    log: Sequence[str] = ()
    """Its lines, oldest first."""
    unique: Unique | None = None
    follows: bool = False
    """It waits for the end of the job that has its key. `due_at` is then the time from which it may start."""
    waits_for: int | None = None
    """Of a blocked job: for how many jobs it still waits."""
    on_dead: OnDead | None = None
    """Of a blocked job, if it is not `cancel`."""
    after: Sequence[str] = ()
    """Only for `restore` of a blocked job: the jobs that it waits for."""
    journal: int | None = None
    """How many entries its journal has; None: it has none."""
    parked: str | None = None
    """Of a parked job: the reason of its last park."""
    entries: Sequence[NewEntry] = ()
    """Only for `restore`: its journal."""


@dataclass(frozen=True)
class JobOutcome:
    """What has become of a job."""

    id: str
    queue: str
    state: State
    attempt: int
    attempts: int
    result: Body | None
    error: JobError | None


@dataclass(frozen=True, kw_only=True)
class Listed(Record):
    """A job in a list. `cursor`: where a page ends that ends with this job, even if the job has moved on or is gone."""

    cursor: str


@dataclass(frozen=True)
class Page:
    """`next`: where to go on; None: the list ended. With a filter a page may be short, or empty, and not the last."""

    jobs: Sequence[Listed]
    next: str | None


@dataclass(frozen=True)
class DataFilter:
    """A value at a place in the data: names that lead through objects, and a text, or a number, true, false or null as JSON writes it."""

    path: Sequence[str]
    value: str

    @property
    def number(self) -> float | None:
        """The number that the value is, as JSON writes it."""
        is_number = re.fullmatch(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?", self.value)
        return float(self.value) if is_number else None


@dataclass(frozen=True)
class JobFilter:
    """What is given must hold. `group` empty: without a group. `text`: a part of the data, as stored."""

    group: str | None = None
    key: str | None = None
    error_code: str | None = None
    error_text: str | None = None
    pushed_from: int | None = None
    pushed_before: int | None = None
    text: str | None = None
    data: DataFilter | None = None


@dataclass(frozen=True)
class JobUpdate:
    """A change of a blocked, scheduled or waiting job; None: as it is."""

    id: str
    data: Body | None = None
    priority: int | None = None
    delay: int | None = None
    run_at: int | None = None

    def __post_init__(self) -> None:
        check_fields(vars(self))
        object.__setattr__(self, "id", self.id.lower())


@dataclass(frozen=True)
class Removed:
    """`removed`: how many jobs. `more`: call again."""

    removed: int
    more: bool


def cursor_fields(state: State, cursor: str) -> Sequence[str]:
    """What a store has put into a cursor behind the state."""
    own, *fields = cursor.split(".")
    if own != state or len(fields) < 2:
        raise MillpondError("InvalidOption", f"`after` is the cursor of a job from a list of {state} jobs")
    return fields


@dataclass(frozen=True)
class Bell:
    """A hint that there is work, room, a finished or a cancelled job. Without ids it may be any job of the queue."""

    kind: BellKind
    queue: str
    ids: tuple[str, ...] = ()
