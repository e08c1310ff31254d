"""What goes into a store and comes out of it: contract/operations.md as types. Times are ms since 1970, spans are ms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypedDict

from millpond.backoff import Backoff
from millpond.durations import LONGEST, check_integer
from millpond.encoding import SAFE, Body
from millpond.errors import MillpondError
from millpond.histogram import Buckets
from millpond.ids import check_id
from millpond.names import check_key, check_queue

State = Literal["scheduled", "waiting", "running", "done", "dead", "cancelled"]
STATES: Final[tuple[State, ...]] = ("scheduled", "waiting", "running", "done", "dead", "cancelled")
Metric = Literal["wait", "run"]
MOST_ATTEMPTS: Final = 1_000_000
LEAST_LEASE: Final = 50
LONGEST_RUN: Final = 24 * 86_400_000
LATEST: Final = 8_640_000_000_000_000


class Settings(TypedDict, total=False):
    """A queue's settings; what is not there stays as it is. None: no capacity, no timeout."""

    capacity: int | None
    keep_done: int
    keep_dead: int
    paused: bool
    attempts: int
    backoff: Backoff
    lease: int
    timeout: int | None


LIMITS: Final = frozenset(("running", "rate", "grouped", "group_running", "group_rate"))


def check_settings(queue: str, settings: Settings) -> None:
    check_queue(queue)
    if unknown := settings.keys() - Settings.__annotations__.keys():
        # To drop a limit silently would be worse than to have none.
        code = "NotSupported" if unknown & LIMITS else "InvalidOption"
        raise MillpondError(code, f"this store has no setting {', '.join(sorted(unknown))}")
    if settings.get("capacity") is not None:
        check_integer(settings["capacity"], "capacity", 1, SAFE)
    if settings.get("timeout") is not None:
        check_integer(settings["timeout"], "timeout", 1, LONGEST_RUN)
    for name, value in (("keep_done", settings.get("keep_done")), ("keep_dead", settings.get("keep_dead"))):
        if value is not None:
            check_integer(value, name, 0, LONGEST)
    if "lease" in settings:
        check_integer(settings["lease"], "lease", LEAST_LEASE, LONGEST_RUN)
    if "attempts" in settings:
        check_integer(settings["attempts"], "attempts", 1, MOST_ATTEMPTS)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to push. `attempts` and `timeout` None: the queue's. `fresh`: the id was made for this very push."""

    id: str
    queue: str
    data: Body
    priority: int = 4
    delay: int | None = None
    run_at: int | None = None
    key: str | None = None
    group: str | None = None
    attempts: int | None = None
    timeout: int | None = None
    trace: str | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", check_id(self.id))
        check_queue(self.queue)
        check_integer(self.priority, "priority", 0, 9)
        for name, value in (("key", self.key), ("group", self.group)):
            if value is not None:
                check_key(value, name)
        if self.trace is not None:
            check_trace(self.trace)
        if self.delay is not None:
            check_integer(self.delay, "delay", 0, LONGEST)
        if self.run_at is not None:
            check_integer(self.run_at, "run_at", 0, LATEST)
        if self.attempts is not None:
            check_integer(self.attempts, "attempts", 1, MOST_ATTEMPTS)
        if self.timeout is not None:
            check_integer(self.timeout, "timeout", 1, LONGEST_RUN)


def check_trace(value: str) -> None:
    if not (1 <= len(value) <= 512 and value.isascii() and value.isprintable()):
        raise MillpondError("InvalidOption", f"trace is {value!r}; it is 1 to 512 printable ASCII characters")


@dataclass(frozen=True, slots=True)
class Pushed:
    status: Literal["pushed", "existing", "full", "failed"]
    id: str
    error: MillpondError | None = None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    id: str
    fence: int
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


@dataclass(frozen=True, slots=True)
class Claimed:
    now: int
    lease: int
    retry_after: int | None
    jobs: list[ClaimedJob]


@dataclass(frozen=True)
class Held:
    """A claim that its worker states. `key`: the job's, which spares Redis a search if the queue has partitions."""

    id: str
    fence: int
    key: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", check_id(self.id))
        check_integer(self.fence, "fence", 0, SAFE)


@dataclass(frozen=True)
class JobError:
    code: str
    name: str
    message: str
    stack: str | None = None

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in vars(self).items() if value is not None})

    @staticmethod
    def from_json(text: str) -> JobError:
        try:
            return JobError.of(json.loads(text))
        except ValueError:
            return UNREADABLE

    @staticmethod
    def of(fields: object) -> JobError:
        if not isinstance(fields, Mapping):
            return UNREADABLE
        code, name, message, stack = (fields.get(field) for field in ("code", "name", "message", "stack"))
        return JobError(str(code), str(name), str(message), None if stack is None else str(stack))


UNREADABLE: Final = JobError("PayloadNotDecodable", "MillpondError", "The stored error cannot be read.")


@dataclass(frozen=True)
class Completion(Held):
    result: Body | None = None


@dataclass(frozen=True, kw_only=True)
class Failure(Held):
    """`delay` in ms; `backoff`: by the queue's policy; None: no further attempt."""

    error: JobError
    delay: int | Literal["backoff"] | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delay is not None and self.delay != "backoff":
            check_integer(self.delay, "delay", 0, LONGEST)


@dataclass(frozen=True)
class Extension(Held):
    progress: Body | None = None


Outcome = Literal["ok", "stale"]
FailOutcome = Literal["retry", "dead", "stale"]
ExtendOutcome = Literal["ok", "stale", "cancelled"]


@dataclass(frozen=True, slots=True)
class Lost:
    id: str
    queue: str
    attempt: int
    state: Literal["waiting", "dead"]


@dataclass(slots=True)
class Swept:
    """`next_due`: ms until the next scheduled job is due, 0 if one is overdue. `more`: there may be more to do at once."""

    lost: list[Lost] = field(default_factory=list)
    promoted: int = 0
    expired: int = 0
    more: bool = False
    next_due: int | None = None
    queues: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """All there is to know about a job."""

    id: str
    queue: str
    state: State
    priority: int
    attempt: int
    attempts: int
    key: str | None
    group: str | None
    timeout: int | None
    trace: str | None
    pushed_at: int
    due_at: int
    started_at: int | None
    finished_at: int | None
    worker: str | None
    data: Body
    progress: Body | None
    result: Body | None
    error: JobError | None


@dataclass(frozen=True, slots=True)
class Slice:
    """Measured times of a queue, counted in buckets."""

    queue: str
    priority: int
    metric: Metric
    buckets: Buckets


@dataclass(slots=True)
class QueueStats:
    queue: str
    capacity: int | None
    paused: bool
    counts: dict[State, int]
    oldest_waiting: int | None
    histograms: list[Slice]


BellKind = Literal["work", "room", "finished", "cancelled"]
BELL_KINDS: Final[tuple[BellKind, ...]] = ("work", "room", "finished", "cancelled")


@dataclass(frozen=True, slots=True)
class Bell:
    """A hint that there is work, room, a finished or a cancelled job. Without ids it may be any job of the queue."""

    kind: BellKind
    queue: str
    ids: tuple[str, ...] = ()
