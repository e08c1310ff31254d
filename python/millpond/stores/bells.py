"""What listening has in common: a thread that rings until it is stopped."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable

from millpond.jobs import BELL_KINDS, Bell


class BellThread(threading.Thread):
    def __init__(self, ring: Callable[[Bell], None]) -> None:
        super().__init__(name="millpond-bells", daemon=True)
        self.ring, self.over = ring, threading.Event()

    @abstractmethod
    def run(self) -> None: ...

    def ring_told(self, kind: str, queue: str, ids: tuple[str, ...] = ()) -> None:
        """Rings if the kind is one of this version's."""
        for known in BELL_KINDS:
            if kind == known:
                self.ring(Bell(known, queue, ids))

    def stop(self) -> None:
        self.over.set()
        if threading.current_thread() is not self:
            self.join()
