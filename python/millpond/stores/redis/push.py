from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from millpond.errors import MillpondError
from millpond.jobs import NewJob, Pushed
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.links import Links
from millpond.stores.redis.registry import Registry, group_by_part
from millpond.stores.redis.routing import Part, partition_of
from millpond.stores.redis.wire import encoded, to_bytes, to_id

TOO_LATE = 2
MOST_LINK_BYTES = 1_000_000


@dataclass
class Staging:
    """Jobs that wait until it is decided about all of them. `of`: a job as stage.lua takes it. `parts`: where jobs were sent. `is_held`: a
    job met one of a graph that was not decided; it is by now."""

    id: bytes
    home: str
    whole: bool
    of: Callable[[NewJob], tuple[bytes, bytes, int, bytes]]
    links: Links
    parts: set[Part] = field(default_factory=set)
    is_held: bool = False

    def arguments(self, jobs: Sequence[NewJob]) -> tuple[int, list[object], list[bytes]]:
        """Of the first jobs, and of how many."""
        told, size = list[tuple[bytes, bytes, int, bytes]](), 0
        for job in jobs:
            if size > MOST_LINK_BYTES:
                break
            parents, children, known, ended = self.of(job)
            told.append((parents, children, known, ended))
            size += len(parents) + len(children)
        near, gone = [known for _, _, known, _ in told], [int(bool(ended)) for *_, ended in told]
        head: list[object] = [self.home, False, self.whole, [len(each[0]) for each in told], [len(each[1]) for each in told]]
        head += [near if any(near) else None, gone if any(gone) else None]
        return len(told), head, [self.id, b"".join(parents + ended + children for parents, children, _, ended in told)]


class Decision(NamedTuple):
    """Firings that take place. `since`: when the oldest firing was decided that is not forgotten yet."""

    now: int
    since: int


class Pusher:
    """A push: a call per partition and 500 jobs. `lost_settings`: queues that the server had to make anew. With `decision` it pushes the
    jobs of firings: each once, and even where there is no room."""

    def __init__(
        self, registry: Registry, jobs: Sequence[NewJob], decision: Decision | None = None, staging: Staging | None = None, links: Links | None = None
    ) -> None:
        self._registry, self.jobs, self._staging, self._links = registry, jobs, staging, staging.links if staging else links
        self._script, self._more = ("push", list[int]()) if decision is None else ("fire", [decision.now, decision.since])
        self._pushed: dict[int, Pushed] = {}
        self.lost_settings: set[str] = set()

    def push(self) -> list[Pushed]:
        pushed = self.outcomes()
        if pushed and pushed[0].error and all(each.error for each in pushed):
            raise pushed[0].error
        return pushed

    def outcomes(self) -> list[Pushed]:
        for queue in dict.fromkeys(job.queue for job in self.jobs):
            floor = None if queue in self._registry.known else self._registry.register(queue)
            again = self._push_queue(queue, [at for at, job in enumerate(self.jobs) if job.queue == queue], floor)
            if again:
                # Nothing was stored of these: the queue is new or was removed, and may have other partitions now.
                again = self._push_queue(queue, again, self._registry.register(queue))
            self._fail(again, MillpondError("StoreFailed", f"the queue {queue} cannot be made"))
        return [self._pushed[at] for at in range(len(self.jobs))]

    @property
    def pushed_to(self) -> set[str]:
        return {self.jobs[at].queue for at, outcome in self._pushed.items() if outcome.status == "pushed"}

    def _push_queue(self, queue: str, indexes: list[int], floor: int | None) -> list[int]:
        """The answer is the jobs of which nothing was stored."""
        parts, again = self._registry.parts(queue), list[int]()
        if len(parts) > 1:
            # A group's jobs lie in one partition, and a key's in one: these may be two.
            both = [at for at in indexes if None not in (self.jobs[at].key, self.jobs[at].group)]
            self._fail(both, MillpondError("NotSupported", f"a job of {queue}, which has partitions, has a key and a group"))
            indexes = [at for at in indexes if at not in self._pushed]
        routed = ((at, self.jobs[at]) for at in indexes)
        by_part = group_by_part((parts[partition_of(job.id, job.key, job.group, len(parts))], at) for at, job in routed)
        for part, chunk in [(part, chunk) for part, chosen in by_part.items() for chunk in chunks(chosen)]:
            try:
                again += self._push_part(part, chunk, floor)
            except MillpondError as error:
                self._fail(chunk, error)
        return again

    def _push_part(self, part: Part, chunk: Sequence[int], floor: int | None) -> Sequence[int]:
        jobs = [self.jobs[at] for at in chunk]
        staged_head, staged_items = list[object](), list[bytes]()
        if self._staging:
            count, staged_head, staged_items = self._staging.arguments(jobs)
            if count < len(chunk):
                return [*self._push_part(part, chunk[:count], floor), *self._push_part(part, chunk[count:], floor)]
        values: dict[tuple[Any, ...], int] = {}
        which = [values.setdefault(_values(job), len(values) + 1) for job in jobs]
        data = [encoded(job.data) for job in jobs]
        sizes = [len(each) for each in data]
        head: list[object] = [floor, [list(each) for each in values], which if len(values) > 1 else None, sizes, self._registry.known[part.queue], *self._more]
        items = [b"".join(to_bytes(job.id) for job in jobs), b"".join(data)]
        if self._staging:
            self._staging.parts.add(part)
            head, items = [*head, *staged_head], [*items, *staged_items]
        script = "stage" if self._staging else "push-once" if self._script == "push" and any(job.once for job in jobs) else self._script
        answer = self._registry.connection.on_part(script, part, head, items)
        if answer and answer[0] == TOO_LATE:
            raise MillpondError("StoreUnavailable", f"a firing for {part.queue} was sent too late")
        if not answer or not answer[0]:
            self.lost_settings.add(part.queue)
        if not answer:
            return chunk
        if not answer[0]:
            self._registry.confirm(part)
        held = list[int]()
        for at, job, outcome in zip(chunk, jobs, answer[1:] or [0] * len(jobs), strict=True):
            if isinstance(outcome, list):
                if outcome[0] == b"held":
                    # `existing` would be wrong where that graph comes to nothing: it is decided, and the job pushed once more.
                    held.append(at)
                    if self._links:
                        self._links.finish(part, outcome[1], outcome[2].decode())
                self._pushed[at] = Pushed("orphan", job.id, parent=to_id(outcome[1]))
                continue
            existing = isinstance(outcome, bytes)
            # Behind the id of a job that was replaced stands a byte more.
            status: Any = ("existing" if len(outcome) == 16 else "replaced") if existing else "full" if outcome else "pushed"
            self._pushed[at] = Pushed(status, to_id(outcome[:16]) if existing else job.id)
        if held and self._staging:
            self._staging.is_held = True
        return self._push_part(part, held, floor) if held and not self._staging else []

    def _fail(self, indexes: Iterable[int], error: MillpondError) -> None:
        for at in indexes:
            self._pushed[at] = Pushed("failed", self.jobs[at].id, error)


def _values(job: NewJob) -> tuple[Any, ...]:
    when = (job.priority, job.delay, job.run_at, job.attempts, job.timeout)
    common = (*when, job.group, job.key, job.trace, None if job.cost == 1 else job.cost)
    if (once := job.once) is None:
        return common
    return (*common, (once.unique and once.unique.stored, once.replace or None, once.max_wait, once.follow or None))
