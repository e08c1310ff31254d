"""How many workers a queue needs. Formulas: docs/sizing.md; cases: contract/vectors/sizing.json. Times are in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

MAX_WORKERS: Final = 1_000_000
_SHARE_ABOVE_LONGEST: Final = 0.01
_SHARE_ABOVE_QUEUE: Final = 0.001


@dataclass(frozen=True)
class Demand:
    """`rate`: jobs a second; `work`: mean run time. `surge`: how long the rate lasts; None: it goes on."""

    rate: float
    work: float
    variation: float = 1
    surge: float | None = None
    drain_within: float = 60
    backlog: int = 0
    wait: float = math.inf


@dataclass(frozen=True)
class Sizing:
    """`queue`: jobs that wait. `longest`: the wait of the last job of a surge; else of 99 jobs of 100."""

    workers: int
    load: float
    utilization: float = 0
    queue: int = 0
    drain: float = 0
    mean: float = 0
    longest: float = 0


def sizing(demand: Demand) -> Sizing | None:
    """None: more than MAX_WORKERS."""
    load = demand.rate * demand.work
    if load >= MAX_WORKERS:
        return None
    return _lasting(demand, load) if demand.surge is None else _surging(demand, demand.surge, load)


def _lasting(demand: Demand, load: float) -> Sizing | None:
    work, backlog = demand.work, demand.backlog
    if demand.rate == 0 and backlog == 0:
        return Sizing(0, load)
    least = max(math.floor(load) + 1, math.ceil(load + backlog * work / demand.drain_within))
    blocked = 1.0
    for workers in range(1, MAX_WORKERS + 1):
        blocked = load * blocked / (workers + load * blocked)
        if workers < least:
            continue
        utilization = load / workers
        waits = blocked / (1 - utilization * (1 - blocked))
        scale = work / (workers - load) * (1 + demand.variation**2) / 2
        if waits * scale > demand.wait:
            continue
        longest = scale * math.log(waits / _SHARE_ABOVE_LONGEST) if waits > _SHARE_ABOVE_LONGEST else 0
        queue = backlog + _long_queue(waits, utilization)
        return Sizing(workers, load, utilization, queue, backlog * work / (workers - load), waits * scale, longest)
    return None


def _long_queue(waits: float, utilization: float) -> int:
    """P(more than n jobs wait) = waits × utilization ** (n + 1)."""
    if waits <= _SHARE_ABOVE_QUEUE:
        return 0
    return max(0, math.ceil(math.log(_SHARE_ABOVE_QUEUE / waits) / math.log(utilization)) - 1)


def _surging(demand: Demand, surge: float, load: float) -> Sizing | None:
    work, backlog = demand.work, demand.backlog
    jobs = backlog + demand.rate * surge
    if jobs == 0:
        return Sizing(0, load)
    workers = max(1, math.ceil(jobs * work / (surge + demand.drain_within)))
    if workers > MAX_WORKERS:
        return None
    queue = max(0, jobs - workers * surge / work)
    first, drain = backlog * work / workers, queue * work / workers
    most = math.ceil(max(queue, backlog))
    return Sizing(workers, load, load / workers, most, drain, (first + drain) / 2, max(first, drain))
