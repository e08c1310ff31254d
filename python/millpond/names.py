"""Names of queues, and keys (groups alike). Cases: contract/vectors/keys.json."""

from __future__ import annotations

import re

from millpond.errors import MillpondError

_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}")


def is_name(name: object) -> bool:
    """Of a queue or a schedule."""
    return isinstance(name, str) and _QUEUE.fullmatch(name) is not None


def check_queue(name: object) -> str:
    if isinstance(name, str) and is_name(name):
        return name
    rule = "a queue's name has 1 to 128 of A–Z a–z 0–9 _ - . : / and begins with a letter or digit"
    raise MillpondError("InvalidName", f"{name!r}: {rule}")


def check_key(key: object, what: str = "key") -> str:
    # A lone surrogate is no UTF-8, and no store can keep it.
    if isinstance(key, str) and "\0" not in key and 1 <= len(key.encode("utf-8", "surrogatepass")) <= 255:
        if not any("\ud800" <= each <= "\udfff" for each in key):
            return key
    raise MillpondError("InvalidName", f"{key!r}: a {what} has 1 to 255 bytes of UTF-8, no NUL and no lone surrogate")
