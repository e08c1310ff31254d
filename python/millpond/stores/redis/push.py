from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from millpond.errors import MillpondError
from millpond.jobs import NewJob, Pushed
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part, partition_of
from millpond.stores.redis.wire import encoded, to_bytes, to_id

MOST_ITEMS: Final = 500


class Pusher:
    """A push: a call per partition and 500 jobs. `lost_settings`: queues that the server had to make anew."""

    def __init__(self, registry: Registry, jobs: Sequence[NewJob]) -> None:
        self._registry, self._jobs = registry, jobs
        self._pushed: dict[int, Pushed] = {}
        self.lost_settings: set[str] = set()

    def push(self) -> list[Pushed]:
        for queue in dict.fromkeys(job.queue for job in self._jobs):
            floor = self._registry.register(queue) if queue not in self._registry.known else None
            positions = [at for at, job in enumerate(self._jobs) if job.queue == queue]
            again = self._push_queue(queue, positions, floor)
            if again:
                # Nothing was stored of these: the queue is new or was removed, and may have other partitions now.
                again = self._push_queue(queue, again, self._registry.register(queue))
            self._fail(again, MillpondError("StoreFailed", f"the queue {queue} cannot be made"))
        pushed = [self._pushed[at] for at in range(len(self._jobs))]
        if pushed and all(each.status == "failed" for each in pushed):
            raise pushed[0].error or MillpondError("StoreFailed", "no job was stored")
        return pushed

    def _push_queue(self, queue: str, positions: list[int], floor: int | None) -> list[int]:
        """The answer is the jobs of which nothing was stored."""
        by_part: dict[Part, list[int]] = {}
        parts = self._registry.parts(queue)
        for at in positions:
            job = self._jobs[at]
            by_part.setdefault(parts[partition_of(job.id, job.key, len(parts))], []).append(at)
        again: list[int] = []
        for part, chosen in by_part.items():
            for start in range(0, len(chosen), MOST_ITEMS):
                chunk = chosen[start : start + MOST_ITEMS]
                try:
                    again += self._push_part(part, chunk, floor)
                except MillpondError as error:
                    self._fail(chunk, error)
        return again

    def _push_part(self, part: Part, chunk: list[int], floor: int | None) -> list[int]:
        jobs = [self._jobs[at] for at in chunk]
        values: dict[tuple[Any, ...], int] = {}
        which = [values.setdefault(_values(job), len(values) + 1) for job in jobs]
        head = [floor, [list(each) for each in values], which if len(values) > 1 else None]
        items = [b"".join(to_bytes(job.id) for job in jobs), *(encoded(job.data) for job in jobs)]
        answer = self._registry.connection.on_part("push", part, head, items)
        if not answer:
            self.lost_settings.add(part.queue)
            return chunk
        listed, *outcomes = answer
        if not listed:
            self.lost_settings.add(part.queue)
            self._registry.confirm(part)
        for at, job, outcome in zip(chunk, jobs, outcomes, strict=True):
            if isinstance(outcome, bytes):
                self._pushed[at] = Pushed("existing", to_id(outcome))
            else:
                self._pushed[at] = Pushed("full" if outcome else "pushed", job.id)
        return []

    def _fail(self, positions: list[int], error: MillpondError) -> None:
        for at in positions:
            self._pushed[at] = Pushed("failed", self._jobs[at].id, error)


def _values(job: NewJob) -> tuple[Any, ...]:
    return (job.priority, job.delay, job.run_at, job.attempts, job.timeout, job.group, job.key, job.trace)
