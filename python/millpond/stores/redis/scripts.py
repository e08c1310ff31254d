"""The scripts of contract/redis, ready to be called."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache

from millpond.contract import read


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    text: str
    sha: str
    keys: tuple[str, ...]
    """The names of its keys, in order."""


@cache
def script(name: str) -> Script:
    source = read(f"redis/{name}.lua")
    text = re.sub(r"^-- @include (\S+)$", lambda match: read(f"redis/{match[1]}"), source, flags=re.MULTILINE)
    keys = re.search(r"^-- KEYS: (.*)$", source, flags=re.MULTILINE)
    return Script(name, text, hashlib.sha1(text.encode()).hexdigest(), tuple(keys[1].split()) if keys else ())
