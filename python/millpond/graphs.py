"""Jobs that wait for each other, on any store: pushed all or none, and read again. contract/graphs.md says what the stores do."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from millpond.contract import DEFAULTS, bound
from millpond.durations import check_integer
from millpond.encoding import Body
from millpond.errors import MillpondError
from millpond.ids import check_id
from millpond.jobs import LIVE, STATES, JobError, NewJob, OnDead, Pushed, Relatives, State
from millpond.store import Store

MOST_JOBS: Final[int] = DEFAULTS["graph"]["jobs"]
MOST_SHOWN: Final[int] = DEFAULTS["graph"]["shown"]
MOST_BYTES: Final[int] = DEFAULTS["graph"]["bytes"]
MOST_PARENTS: Final = bound("parents")[1]
LARGER: Final = "For a larger graph push some jobs first, and let the others wait for their ids (after), or be part of one of them (part_of)"
ID_BYTES: Final = 36
"""What a parent counts of the bytes of a call."""
MOST_NAMED: Final = 20
"""Places of a circle that the message names."""
ASKED_AT_ONCE: Final = 100
"""Results that are in memory at once."""
LOOKED_AT_ONCE: Final = 200
FEW_RELATIVES: Final = 100
"""Asked for of many jobs at once; those that have more are asked for one by one."""
RELATIVES_PER_JOB: Final = 20
"""Told in all of a graph, beside twice as many as one job may have: those of a dense graph would fill the memory."""


def push_all(store: Store, jobs: Sequence[NewJob], tx: Any = None) -> list[Pushed]:
    """Pushes all of the jobs or none, in any queues and any order: parents are stored before their children. Answers in the order given.
    `tx`: as of `Store.push`. To repeat a call is safe, as its jobs keep their ids.

    Errors: `GraphCycle`, `ParentUnknown`, `KeyHeld`, `QueueFull`, `InvalidOption`, `PayloadTooLarge`, and those of `Store.push`."""
    if len(jobs) > MOST_JOBS:
        raise MillpondError("PayloadTooLarge", f"a call that stores all of its jobs or none takes at most {MOST_JOBS}; got {len(jobs)}. {LARGER}")
    size = sum(len(job.data.body) + ID_BYTES * len(job.after) for job in jobs)
    if size > MOST_BYTES:
        message = f"the jobs of one call may have {MOST_BYTES} bytes together, a parent counted as {ID_BYTES}; got {size}"
        raise MillpondError("PayloadTooLarge", f"{message}. {LARGER}")
    if not jobs:
        return []
    order = _order(jobs)
    outcomes = store.push([jobs[at] for at in order], tx, whole=True)
    # One with a reason of its own says more than those that were withheld for it.
    for at, outcome in zip(order, outcomes, strict=True):
        if outcome.status in ("full", "orphan", "held", "failed"):
            raise _refusal(jobs[at], outcome)
    if any(outcome.status == "withheld" for outcome in outcomes):
        raise MillpondError("StoreFailed", "the store did not say why it stored no job")
    pushed = dict(zip(order, outcomes, strict=True))
    return [pushed[at] for at in range(len(jobs))]


def followed_by(jobs: Sequence[NewJob], callback: NewJob) -> list[NewJob]:
    """The jobs, and one more that waits for all of them, for `push_all`. With `on_dead="run"` it starts however they end."""
    return [*jobs, replace(callback, after=list(dict.fromkeys([*callback.after, *(job.id for job in jobs)])))]


def _refusal(job: NewJob, outcome: Pushed) -> MillpondError:
    if outcome.error:
        return outcome.error
    if outcome.status == "full":
        return MillpondError("QueueFull", f"queue {job.queue} has no room for all of the jobs; nothing was stored")
    if outcome.status == "held":
        why = "has the key, and does not wait for the jobs of `after`"
        return MillpondError("KeyHeld", f"push to {job.queue}: job {outcome.id} {why}; nothing was stored")
    why = "is not known to the store, or has ended and takes no more parts"
    return MillpondError("ParentUnknown", f"push to {job.queue}: job {outcome.parent} {why}; nothing was stored")


def _order(jobs: Sequence[NewJob]) -> list[int]:
    """Places, each behind those of its parents; as they were, if they are so. Error: `GraphCycle`."""
    # Of two with the same id, the first one is stored.
    places = {job.id: at for at, job in reversed(list(enumerate(jobs)))}
    parents = [sorted({places[id] for id in (*job.after, job.part_of) if id in places}) for job in jobs]
    if all(parent < at for at, own in enumerate(parents) for parent in own):
        return list(range(len(jobs)))
    left, children = [len(own) for own in parents], [list[int]() for _ in jobs]
    for at, own in enumerate(parents):
        for parent in own:
            children[parent].append(at)
    order = [at for at, count in enumerate(left) if count == 0]
    # The list grows while it is gone through.
    for parent in order:
        for child in children[parent]:
            left[child] -= 1
            if left[child] == 0:
                order.append(child)
    if len(order) < len(jobs):
        raise _cycle(parents, left)
    return order


def _cycle(parents: Sequence[Sequence[int]], left: Sequence[int]) -> MillpondError:
    """`left`: of each job, how many of its parents can never start."""
    path: list[int] = []
    # From any job that is left, a parent that is left leads on, and at last back.
    at = next(at for at, count in enumerate(left) if count)
    while at not in path:
        path.append(at)
        at = next(parent for parent in parents[at] if left[parent])
    circle = [*path[path.index(at) :], at]
    named = " after ".join(map(str, circle[:MOST_NAMED]))
    more = f", and {len(circle) - MOST_NAMED} more" if len(circle) > MOST_NAMED else ""
    return MillpondError("GraphCycle", f"jobs wait for each other in a circle, by their places: {named}{more}")


@dataclass(frozen=True)
class Parent:
    """What a job that was waited for has come to. `gone`: the store does not know it any more: it was removed, or its queue keeps no
    jobs."""

    id: str
    queue: str | None
    state: State | Literal["gone"]
    result: Body | None = None
    error: JobError | None = None


def parents_of(store: Store, id: str) -> Iterator[Parent]:
    """The jobs that a job waited for, with their results and errors, by id."""
    [relatives] = store.relatives([check_id(id)], MOST_PARENTS)
    ids = sorted((*relatives.parents, *relatives.gone)) if relatives else []
    while ids:
        found = store.outcomes(ids[:ASKED_AT_ONCE])
        for each, outcome in zip(ids, found):
            if outcome is None:
                yield Parent(each, None, "gone")
            else:
                yield Parent(each, outcome.queue, outcome.state, outcome.result, outcome.error)
        ids = ids[len(found) :]


@dataclass(frozen=True)
class GraphNode:
    """A job in its graph. Its parents and children are those that the store still has."""

    id: str
    queue: str
    state: State
    on_dead: OnDead
    parents: Sequence[str]
    children: Sequence[str]


@dataclass(frozen=True)
class Graph:
    """The job that was asked for comes first, then those next to it, and so on. `left`: how many have not ended. `more`: there are jobs
    beyond the limit."""

    nodes: Sequence[GraphNode]
    counts: Mapping[State, int]
    more: bool

    @property
    def left(self) -> int:
        return sum(self.counts[state] for state in LIVE)


def graph_of(store: Store, id: str, limit: int = 1000) -> Graph | None:
    """All jobs that are connected with this one, at most `limit`; None: the store does not know it. Error: `InvalidOption`."""
    check_integer(limit, "limit", 1, MOST_SHOWN)
    nodes: list[GraphNode] = []
    seen, level, more = {check_id(id)}, deque([id.lower()]), False
    room = 2 * MOST_PARENTS + RELATIVES_PER_JOB * limit
    while level and room >= 0:
        some = [level.popleft() for _ in range(min(len(level), LOOKED_AT_ONCE))]
        for each, relatives in _relatives(store, some):
            room -= len(relatives.parents) + len(relatives.children)
            if room < 0:
                more = True
                break
            nodes.append(GraphNode(each, relatives.queue, relatives.state, relatives.on_dead, relatives.parents, relatives.children))
            others = [other for other in dict.fromkeys((*relatives.parents, *relatives.children)) if other not in seen]
            fitting = others[: limit - len(seen)]
            more = more or relatives.more or len(fitting) < len(others)
            seen.update(fitting)
            level.extend(fitting)
    counts = Counter(node.state for node in nodes)
    return Graph(nodes, {state: counts[state] for state in STATES}, more) if nodes else None


def _relatives(store: Store, ids: Sequence[str]) -> Iterator[tuple[str, Relatives]]:
    """Of those that are still there."""
    for id, found in zip(ids, store.relatives(ids, FEW_RELATIVES), strict=True):
        if found and found.more:
            [found] = store.relatives([id], MOST_PARENTS)
        if found:
            yield id, found
