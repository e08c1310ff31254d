"""Bells of PostgreSQL: LISTEN on a connection of its own. The server notifies once, and only a listener that asked.

    connecting ──LISTEN──► standing ──the connection fails──► connecting

While LISTEN stands, `listener` is passed with calls that find nothing. After each new LISTEN anything may have happened
meanwhile, so all that this store has asked for rings. Behind a pooler nothing is heard: who waits looks once a second.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Final

import psycopg

from millpond.jobs import Bell, BellKind
from millpond.stores.bells import BellThread
from millpond.stores.postgres.connection import Connected, connect, run

SILENCE: Final = 15.0
WAIT: Final = 0.1
AGAIN_AFTER: Final = 1.0


class Bells(BellThread):
    def __init__(self, url: str, schema: str, ring: Callable[[Bell], None]) -> None:
        super().__init__(ring)
        self._url, self._schema = url, schema
        self._stands, self._name = threading.Event(), secrets.token_hex(8)
        self._asked: set[tuple[BellKind, str]] = set()

    @property
    def listener(self) -> str | None:
        return self._name if self._stands.is_set() else None

    def asked(self, kind: BellKind, queue: str) -> None:
        self._asked.add((kind, queue))

    def run(self) -> None:
        while not self.over.is_set():
            try:
                with connect(self._url) as connection:
                    self._listen(connection)
            except psycopg.Error:
                self.over.wait(AGAIN_AFTER)
            finally:
                self._stands.clear()

    def _listen(self, connection: Connected) -> None:
        run(connection, f"listen {self._schema}")
        self._stands.set()
        for kind, queue in tuple(self._asked):
            self.ring(Bell(kind, queue))
        silent = 0.0
        while not self.over.is_set():
            silent += WAIT
            for notify in connection.notifies(timeout=WAIT):
                silent = 0.0
                told, _, queue = notify.payload.partition(":")
                self.ring_told(told, queue)
            if silent >= SILENCE:
                # A connection that is dead without a word fails here.
                run(connection, f"listen {self._schema}")
                silent = 0.0
