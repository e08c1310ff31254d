from __future__ import annotations

import secrets
import time
from typing import Any, Final

from millpond.errors import LostAnswer, MillpondError
from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.redis.connection import CALL_TIMEOUT
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part
from millpond.stores.redis.wire import claimed, to_bytes

TOO_LATE: Final = 2
SPLIT_ANEW: Final = 3
MOST_TRIES: Final = 3


class Claims:
    """Gives jobs to workers. A claim whose answer never came may hold jobs: they go back before the worker claims again."""

    def __init__(self, registry: Registry) -> None:
        self._connection, self._registry = registry.connection, registry
        self._turn = 0
        self._ahead: float | None = None
        self._rejected: dict[tuple[Part, str], str] = {}

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None, min_priority: int, per_group: int
    ) -> tuple[Claimed, bool]:
        """The answer, and whether the server knows the queue."""
        for _ in range(MOST_TRIES):
            parts = self._registry.parts(queue)
            found, known, refused = self._claim(parts, worker, limit, lease, min_priority, per_group)
            if not refused:
                break
            # It was removed meanwhile, and came back with another number of partitions. If the registry has ours, theirs is out of date.
            if len(self._registry.look(queue)) == len(parts):
                for part in refused:
                    self._registry.note_listed(part)
            if found.jobs:
                break
        return found, known

    def _claim(
        self, parts: list[Part], worker: str, limit: int, lease: int | None, min_priority: int, per_group: int
    ) -> tuple[Claimed, bool, list[Part]]:
        self._turn += 1
        first = self._turn % len(parts)
        rest = parts[first + 1 :] + parts[:first]
        heads: list[list[int]] = []
        jobs: list[ClaimedJob] = []
        after: list[int] = []
        refused: list[Part] = []

        def ask(part: Part, most: int) -> bool:
            """Whether the partition may have more jobs."""
            got = 0
            while True:
                answer = self._call(part, len(parts), worker, most - got, lease, min_priority, per_group)
                heads.append(answer[:5])
                if answer[4] == SPLIT_ANEW:
                    refused.append(part)
                found = claimed(answer)
                jobs.extend(found)
                got += len(found)
                more = answer[3]
                if more != 1 or most == 0:
                    break
            after.append(answer[2])
            return more == 1 or 0 < most == got and more != TOO_LATE

        try:
            ask(parts[first], limit)
            before = -1
            while rest and before < len(jobs) < limit:
                before, rest = len(jobs), [part for part in rest if ask(part, 0)]
                for number, part in enumerate(rest):
                    share = -(-(limit - len(jobs)) // (len(rest) - number))
                    if share > 0:
                        ask(part, share)
        except MillpondError:
            if not jobs:
                raise
        jobs.sort(key=lambda job: (-job.priority, job.pushed_at) if len(parts) > 1 else (0, 0))
        known, short = max(head[4] for head in heads), len(jobs) < limit
        least = min((each for each in after if each >= 0), default=None)
        return Claimed(heads[-1][0], heads[-1][1], least if short else None, known == 2, jobs), known > 0, refused

    def settle(self) -> None:
        for part, worker in list(self._rejected):
            self._settle(part, worker)

    def _settle(self, part: Part, worker: str) -> None:
        call = self._rejected.get((part, worker))
        if call is None:
            return
        answer = self._connection.on_part("claim", part, [0, None, worker, call, None], again=True)
        held = [item for job in claimed(answer) for item in (to_bytes(job.id), job.fence)]
        while held:
            outcomes = self._connection.on_part("release", part, [None], held)
            held = held[2 * len(outcomes) :] if outcomes else []
        self._rejected.pop((part, worker), None)

    def _call(
        self, part: Part, partitions: int, worker: str, limit: int, lease: int | None, min_priority: int, per_group: int
    ) -> Any:
        self._settle(part, worker)
        call, latest = secrets.token_hex(8), None
        if self._ahead is not None and self._connection.now() is None:
            latest = int((time.time() + self._ahead + CALL_TIMEOUT) * 1000)
        try:
            head = [limit, lease, worker, call, latest, min_priority, per_group, partitions]
            answer = self._connection.on_part("claim", part, head)
        except LostAnswer:
            self._rejected[part, worker] = call
            raise
        self._ahead = answer[0] / 1000 - time.time()
        return answer
