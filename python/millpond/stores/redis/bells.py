"""Bells of Redis: a subscription for those of other processes; the store rings its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from io import BytesIO
from typing import Final

import msgpack
from redis.exceptions import RedisError

from millpond.jobs import BELL_KINDS, Bell, BellKind
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.wire import to_id

WAIT: Final = 0.1
AGAIN_AFTER: Final = 1.0


class Bells(threading.Thread):
    def __init__(self, connection: Connection, origin: str, ring: Callable[[Bell], None]) -> None:
        super().__init__(name="millpond-bells", daemon=True)
        self._connection, self._origin, self._ring = connection, origin, ring
        self._over = threading.Event()

    def own(self, kind: BellKind, queue: str, ids: tuple[str, ...] = ()) -> None:
        self._ring(Bell(kind, queue, ids))

    def stop(self) -> None:
        self._over.set()
        if threading.current_thread() is not self:
            self.join()

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with self._connection.client.pubsub() as subscription:
                    subscription.subscribe(self._connection.channel)
                    while not self._over.is_set():
                        message = subscription.get_message(timeout=WAIT)
                        if message and message["type"] == "message":
                            self._heard(message["data"])
            except RedisError:
                self._over.wait(AGAIN_AFTER)

    def _heard(self, message: bytes) -> None:
        unpacker = msgpack.Unpacker(BytesIO(message))
        origin, queue, told = unpacker.unpack()
        ids = message[unpacker.tell() :]
        for kind in BELL_KINDS:
            if kind == told and origin != self._origin:
                self._ring(Bell(kind, queue, tuple(to_id(ids[at : at + 16]) for at in range(0, len(ids), 16))))
