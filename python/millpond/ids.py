"""Ids of jobs: UUIDs in lower-case text. Cases: contract/vectors/ids.json."""

from __future__ import annotations

import re
import secrets
import threading
import time
from uuid import UUID

from millpond.errors import MillpondError

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_RANDOM_BITS = 74
_lock = threading.Lock()
_last = (0, 0)


def check_id(text: object) -> str:
    """The id in lower case, which is how it is kept. Error: `InvalidName`."""
    if isinstance(text, str) and text.isascii() and _ID.fullmatch(text.lower()):
        return text.lower()
    raise MillpondError("InvalidName", f"{text!r}: an id is a UUID in text, of version 1 to 8")


def new_id() -> str:
    """A UUIDv7 (RFC 9562), greater than every earlier one of this process."""
    global _last
    with _lock:
        # If the clock stands or went back: count on from the last one. The upper bit is left free for that.
        drawn = (time.time_ns() // 1_000_000, secrets.randbits(_RANDOM_BITS - 1))
        _last = drawn if drawn[0] > _last[0] else (_last[0], _last[1] + 1)
        ms, low = _last
    return str(UUID(int=ms << 80 | 0x7 << 76 | low >> 62 << 64 | 0b10 << 62 | low & (1 << 62) - 1))
