"""Bells of PostgreSQL: LISTEN on a connection of its own. The server notifies once, and only a listener that asked before.

    connecting ──LISTEN──► standing ──the connection fails──► connecting

While LISTEN stands, `listener` is passed with calls that find nothing. After each new LISTEN everything may have happened: all that
this store asked for rings.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Final

import psycopg

from millpond.jobs import BELL_KINDS, Bell, BellKind
from millpond.stores.postgres.connection import Connected, connect, run

SILENCE: Final = 15.0
WAIT: Final = 0.1
AGAIN_AFTER: Final = 1.0


class Bells(threading.Thread):
    def __init__(self, url: str, schema: str, ring: Callable[[Bell], None]) -> None:
        super().__init__(name="millpond-bells", daemon=True)
        self._url, self._schema, self._ring = url, schema, ring
        self._over, self._stands = threading.Event(), threading.Event()
        self._name = secrets.token_hex(8)
        self._asked: set[tuple[BellKind, str]] = set()

    @property
    def listener(self) -> str | None:
        return self._name if self._stands.is_set() else None

    def asked(self, kind: BellKind, queue: str) -> None:
        self._asked.add((kind, queue))

    def stop(self) -> None:
        self._over.set()
        if threading.current_thread() is not self:
            self.join()

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with connect(self._url) as connection:
                    self._listen(connection)
            except psycopg.Error:
                self._over.wait(AGAIN_AFTER)
            finally:
                self._stands.clear()

    def _listen(self, connection: Connected) -> None:
        run(connection, f"listen {self._schema}")
        self._stands.set()
        for kind, queue in tuple(self._asked):
            self._ring(Bell(kind, queue))
        silent = 0.0
        while not self._over.is_set():
            silent += WAIT
            for notify in connection.notifies(timeout=WAIT):
                silent = 0.0
                told, _, queue = notify.payload.partition(":")
                for known in BELL_KINDS:
                    if told == known:
                        self._ring(Bell(known, queue))
            if silent >= SILENCE:
                run(connection, f"listen {self._schema}")
                silent = 0.0
