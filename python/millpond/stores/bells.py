"""What listening has in common: a thread that rings until it is stopped."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from millpond.errors import MillpondError
from millpond.jobs import BELL_KINDS, Bell
from millpond.store import Store


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


B = TypeVar("B", bound=BellThread)


class ListeningStore(Store, Generic[B]):
    _bells: B | None = None

    @abstractmethod
    def _make_bells(self, ring: Callable[[Bell], None]) -> B: ...

    def listen(self, ring: Callable[[Bell], None]) -> Callable[[], None]:
        if self._bells is not None:
            raise MillpondError("InvalidOption", "this store listens already")
        self._bells = self._make_bells(ring)
        self._bells.start()
        return self._stop_listening

    def _stop_listening(self) -> None:
        bells, self._bells = self._bells, None
        if bells:
            bells.stop()
