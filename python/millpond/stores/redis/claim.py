from __future__ import annotations

import secrets
import time
from typing import Any, Final

from millpond.errors import LostAnswer, MillpondError
from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.redis.connection import CALL_TIMEOUT, Connection
from millpond.stores.redis.wire import claimed, start, to_bytes

LOST: Final = 0
LIMITED: Final = 2


class Claims:
    """Gives jobs to workers. A claim whose answer never came may hold jobs: they go back before the worker claims again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ahead: float | None = None
        self._rejected: dict[tuple[str, str], str] = {}

    def claim(
        self, queue: str, worker: str, limit: int, lease: int | None, min_priority: int, per_group: int
    ) -> tuple[Claimed, bool]:
        """The answer, and whether the server may have lost the queue."""
        jobs: list[ClaimedJob] = []
        answer: Any = None
        while True:
            try:
                answer = self._call(queue, worker, limit - len(jobs), lease, min_priority, per_group)
            except MillpondError:
                # What was given stays given.
                if not jobs:
                    raise
                break
            found = claimed(answer)
            jobs += found
            if answer[3] != 1 or not found or len(jobs) >= limit:
                break
        now, held, retry_after, _, known = answer[:5]
        after = start(retry_after) if len(jobs) < limit else None
        return Claimed(now, held, after, known == LIMITED, jobs), known == LOST

    def settle(self) -> None:
        for queue, worker in list(self._rejected):
            self._settle(queue, worker)

    def _settle(self, queue: str, worker: str) -> None:
        call = self._rejected.get((queue, worker))
        if call is None:
            return
        answer = self._connection.script("claim", queue, [0, None, worker, call, None], again=True)
        held = [item for job in claimed(answer) for item in (to_bytes(job.id), job.fence)]
        while held:
            outcomes = self._connection.script("release", queue, [None], held)
            held = held[2 * len(outcomes) :] if outcomes else []
        self._rejected.pop((queue, worker), None)

    def _call(self, queue: str, worker: str, limit: int, lease: int | None, min_priority: int, per_group: int) -> Any:
        self._settle(queue, worker)
        call, latest = secrets.token_hex(8), None
        if self._ahead is not None and self._connection.now() is None:
            latest = int((time.time() + self._ahead + CALL_TIMEOUT) * 1000)
        try:
            answer = self._connection.script("claim", queue, [limit, lease, worker, call, latest, min_priority, per_group])
        except LostAnswer:
            self._rejected[queue, worker] = call
            raise
        self._ahead = answer[0] / 1000 - time.time()
        return answer
