from __future__ import annotations

import secrets
import time
from typing import Any

from millpond.errors import MillpondError
from millpond.jobs import Claimed, ClaimedJob
from millpond.stores.redis.connection import CALL_TIMEOUT, LostAnswer
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.routing import Part
from millpond.stores.redis.wire import claimed

TOO_LATE = 2


class Claims:
    """Gives jobs to workers. A claim whose answer never came may hold jobs: they go back before the worker claims again."""

    def __init__(self, registry: Registry) -> None:
        self._connection, self._registry = registry.connection, registry
        self._turn = 0
        self._ahead: float | None = None
        self._rejected: dict[tuple[Part, str], str] = {}

    def claim(self, queue: str, worker: str, limit: int, lease: int | None) -> tuple[Claimed, bool]:
        """The answer, and whether the server knows the queue."""
        parts = self._registry.parts(queue)
        self._turn += 1
        first = parts[self._turn % len(parts)]
        asked = _Asked(self, worker, lease)
        try:
            asked.ask(first, limit)
            rest = [part for part in parts if part is not first]
            while rest and len(asked.jobs) < limit:
                rest = [part for part in rest if asked.ask(part, 0)]
                for number, part in enumerate(rest):
                    share = -(-(limit - len(asked.jobs)) // (len(rest) - number))
                    if share > 0:
                        asked.ask(part, share)
        except MillpondError:
            if not asked.jobs:
                raise
        asked.jobs.sort(key=lambda job: (-job.priority, job.pushed_at))
        if not asked.known:
            self._registry.forget(queue)
        after = min(asked.retry_after, default=None) if len(asked.jobs) < limit else None
        return Claimed(asked.now, asked.lease, after, asked.jobs), asked.known

    def settle(self) -> None:
        for part, worker in list(self._rejected):
            self._settle(part, worker)

    def _settle(self, part: Part, worker: str) -> None:
        call = self._rejected.get((part, worker))
        if call is None:
            return
        answer = self._connection.on_part("claim", part, [0, None, worker, call, None], again=True)
        held = [item for at in range(5, len(answer), 5) for item in answer[at : at + 2]]
        if held:
            self._connection.on_part("release", part, [], held)
        self._rejected.pop((part, worker), None)

    def call(self, part: Part, worker: str, limit: int, lease: int | None) -> Any:
        self._settle(part, worker)
        call, latest = secrets.token_hex(8), None
        if self._ahead is not None and self._connection.now() is None:
            latest = int((time.time() + self._ahead + CALL_TIMEOUT) * 1000)
        try:
            answer = self._connection.on_part("claim", part, [limit, lease, worker, call, latest])
        except LostAnswer:
            self._rejected[part, worker] = call
            raise
        self._ahead = answer[0] / 1000 - time.time()
        return answer


class _Asked:
    """What the calls of one claim have answered so far."""

    def __init__(self, claims: Claims, worker: str, lease: int | None) -> None:
        self._claims, self._worker, self._lease = claims, worker, lease
        self.now, self.lease, self.known = 0, 0, False
        self.jobs: list[ClaimedJob] = []
        self.retry_after: list[int] = []

    def ask(self, part: Part, limit: int) -> bool:
        """Whether the partition may have more jobs."""
        got = 0
        while True:
            answer = self._claims.call(part, self._worker, limit - got, self._lease)
            self.now, self.lease, after, more, known, *told = answer
            self.known = self.known or known > 0
            self.jobs += [claimed(told[at : at + 5]) for at in range(0, len(told), 5)]
            got += len(told) // 5
            if more != 1 or limit == 0:
                break
        if after >= 0:
            self.retry_after.append(after)
        return more == 1 or limit > 0 and got == limit and more != TOO_LATE
