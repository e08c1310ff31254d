"""Pushes: contract/redis/push.lua, and push-full.lua where a job has `once` or waits for others, or where all are stored or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.jobs import NewJob, Pushed
from millpond.stores.redis.connection import Argument, Connection
from millpond.stores.redis.wire import encoded, to_bytes, to_id


def push(connection: Connection, jobs: Sequence[NewJob], whole: bool) -> tuple[list[Pushed], bool]:
    """The outcomes, and whether a queue came into being."""
    made = False

    def together(some: Sequence[NewJob]) -> list[Pushed]:
        nonlocal made
        pushed, is_new = _together(connection, some, whole)
        made = made or is_new
        return pushed

    # Jobs that wait for each other go in one call, the others in as many as they take.
    most = len(jobs) if whole or any(_has_links(job) for job in jobs) else 500
    return connection.in_chunks(jobs, together, most), made


def _together(connection: Connection, jobs: Sequence[NewJob], whole: bool) -> tuple[list[Pushed], bool]:
    head, items = push_arguments(jobs)
    has_links = any(_has_links(job) for job in jobs)
    name = "push"
    if whole or has_links or any(job.once and job.key is not None for job in jobs):
        links = [_links(job) for job in jobs] if has_links else None
        ids = [*(parent for job in jobs for parent in [*dict.fromkeys(job.after), *([job.part_of] if job.part_of else [])])]
        name, head, items = "push-full", [*head, whole, links], [*items, b"".join(map(to_bytes, ids))]
    made, *answers = connection.script(name, None, head, items)
    outcomes = answers or [0] * len(jobs)
    return [outcome_of(outcome, job.id) for outcome, job in zip(outcomes, jobs, strict=True)], made == 1


def push_arguments(jobs: Sequence[NewJob]) -> tuple[list[object], list[Argument]]:
    """What push.lua takes of jobs; `fire` takes the same."""
    values: dict[tuple[Any, ...], int] = {}
    which = [values.setdefault(_values(job), len(values) + 1) for job in jobs]
    queues = {name: place for place, name in enumerate(dict.fromkeys(job.queue for job in jobs), 1)}
    data = [encoded(job.data) for job in jobs]
    of = [queues[job.queue] for job in jobs] if len(queues) > 1 else None
    head: list[object] = [[list(each) for each in values], which if len(values) > 1 else None, [len(each) for each in data], [*queues], of]
    return head, [b"".join(to_bytes(job.id) for job in jobs), b"".join(data)]


def outcome_of(answer: Any, id: str) -> Pushed:
    if isinstance(answer, list):
        kind, other = answer
        return Pushed("held", to_id(other)) if kind == b"held" else Pushed("orphan", id, parent=to_id(other))
    if answer == b"w":
        return Pushed("withheld", id)
    if isinstance(answer, bytes):
        # Behind the id of a job that was replaced stands a byte more.
        return Pushed("existing" if len(answer) == 16 else "replaced", to_id(answer[:16]))
    return Pushed("full" if answer else "pushed", id)


def _has_links(job: NewJob) -> bool:
    return bool(job.after) or job.part_of is not None


def _links(job: NewJob) -> Any:
    return [len(dict.fromkeys(job.after)), job.on_dead == "run", job.part_of is not None] if _has_links(job) else False


def _values(job: NewJob) -> tuple[Any, ...]:
    when = (job.priority, job.delay, job.run_at, job.attempts, job.timeout)
    common = (*when, job.group, job.key, job.trace, None if job.cost == 1 else job.cost)
    if (once := job.once) is None or job.key is None:
        return common
    return (*common, (once.unique and once.unique.stored, once.replace or None, once.max_wait, once.follow or None))
