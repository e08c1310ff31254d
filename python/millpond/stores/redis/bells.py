"""Bells of Redis: a subscription for those of other processes; the store rings its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgpack
from redis.exceptions import RedisError

from millpond.jobs import Bell
from millpond.stores.bells import BellThread
from millpond.stores.redis.connection import Connection
from millpond.stores.redis.wire import to_id

WAIT: Final = 0.1
AGAIN_AFTER: Final = 1.0


class Bells(BellThread):
    def __init__(self, connection: Connection, origin: str, ring: Callable[[Bell], None]) -> None:
        super().__init__(ring)
        self._connection, self._origin = connection, origin

    def run(self) -> None:
        while not self.over.is_set():
            try:
                with self._connection.client.pubsub() as subscription:
                    subscription.subscribe(self._connection.channel)
                    while not self.over.is_set():
                        message = subscription.get_message(timeout=WAIT)
                        if message and message["type"] == "message":
                            self._heard(message["data"])
            except RedisError:
                self.over.wait(AGAIN_AFTER)

    def _heard(self, message: bytes) -> None:
        unpacker = msgpack.Unpacker()
        unpacker.feed(message)
        origin, queue, kind = unpacker.unpack()
        ids = message[unpacker.tell() :]
        if origin != self._origin:
            self.ring_told(kind, queue, tuple(to_id(ids[at : at + 16]) for at in range(0, len(ids), 16)))
