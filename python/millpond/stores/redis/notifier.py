"""Bells: a subscription for those of other processes; the store rings its own.

After each new subscription, `work` and `cancelled` ring for all queues that this process claimed from.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from redis.exceptions import RedisError

from millpond.errors import MillpondError
from millpond.jobs import BELL_KINDS, Bell, BellKind
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.wire import bell_of

BELLS_WAIT: Final = 0.1


class Notifier:
    def __init__(self, connection: Connection, origin: str, listener: Callable[[], Callable[[Bell], None] | None]) -> None:
        """`origin` marks what this store publishes; `listener` takes its own bells, if anybody listens."""
        self._connection, self._origin, self._listener = connection, origin, listener
        self.claimed_from: set[str] = set()

    def ring(self, kind: BellKind, queue: str, ids: Sequence[str] = ()) -> None:
        if (listener := self._listener()) is not None:
            listener(Bell(kind, queue, tuple(ids)))

    def ring_jobs(self, kind: BellKind, queue: str, ids: Sequence[str]) -> None:
        if ids:
            self.ring(kind, queue, ids)

    def bells(self, over: threading.Event) -> Iterator[Bell]:
        try:
            with self._connection.client.pubsub() as subscription:
                subscription.subscribe(self._connection.channel)
                while not over.is_set():
                    message = subscription.get_message(timeout=BELLS_WAIT)
                    if message and message["type"] == "subscribe":
                        # Also after a lost connection. What was rung until now went unheard.
                        queues = tuple(self.claimed_from)
                        yield from [Bell(kind, queue) for queue in queues for kind in ("work", "cancelled")]
                    elif message and message["type"] == "message":
                        yield from self._heard(message["data"])
        except RedisError as error:
            raise MillpondError("StoreUnavailable", str(error)) from error

    def _heard(self, message: bytes) -> Iterator[Bell]:
        origin, queue, told, ids = bell_of(message)
        if origin != self._origin:
            yield from [Bell(kind, queue, ids) for kind in BELL_KINDS if kind == told]
