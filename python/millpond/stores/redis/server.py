"""What the server must be, and must not do."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, Final

from millpond.errors import MillpondError
from millpond.stores.redis.connection import Connection

EVICTION_PAUSE: Final = 10.0
"""Seconds between two looks at the server's eviction policy."""


class Server:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._looked_at, self._evicting = time.monotonic(), ""

    def check(self) -> None:
        info: dict[str, Any] = self._connection.repeat(lambda _: self._connection.client.info())
        version = tuple(int(each) for each in str(info["redis_version"]).split(".")[:2])
        if version < (6, 2):
            raise MillpondError("NotSupported", f"Redis is {info['redis_version']}; 6.2 or newer is needed")
        if policy := _evicting(info):
            raise MillpondError("StoreUnavailable", f"Redis drops jobs when it is full: {policy}")
        if not int(info["aof_enabled"]):
            warnings.warn("Redis keeps no append-only file: a crash of the server loses jobs", stacklevel=3)

    def look_at_eviction(self) -> None:
        """The policy may be set while the server runs."""
        if time.monotonic() < self._looked_at + EVICTION_PAUSE:
            return
        self._looked_at = time.monotonic()
        policy = _evicting(self._connection.repeat(lambda _: self._connection.client.info("memory")))
        if policy and not self._evicting:
            text = f"Redis drops jobs when its memory is full (maxmemory-policy {policy}): set it to noeviction"
            warnings.warn(text, stacklevel=3)
        self._evicting = policy


def _evicting(info: Mapping[str, Any]) -> str:
    """The policy by which the server drops keys; empty: it drops none."""
    policy = str(info["maxmemory_policy"])
    return policy if int(info["maxmemory"]) > 0 and policy != "noeviction" else ""
