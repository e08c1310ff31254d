"""Where the contract is: the SQL, the Lua, the defaults and the vectors that all languages share.

In the repository it is beside this package's folder. A published package will carry a copy; then this file changes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

CONTRACT: Final[Path] = Path(__file__).resolve().parents[2] / "contract"


def read(path: str) -> str:
    return (CONTRACT / path).read_text("utf-8")


DEFAULTS: Final[dict[str, dict[str, Any]]] = json.loads(read("defaults.json"))
"""Every default and bound that languages share, in the contract's names. Times are in ms, sizes in bytes."""


def bound(name: str) -> tuple[int, int]:
    """The least and the most that a value may be."""
    limits = DEFAULTS["bounds"][name]
    return limits["least"], limits["most"]


def migrations(store: str) -> list[str]:
    """The texts of a store's migrations, in order. The number of the last one is the store's version."""
    return [path.read_text("utf-8") for path in sorted((CONTRACT / store / "migrations").glob("*.sql"))]


def statements(store: str) -> dict[str, str]:
    """Every statement of a store by FILE/NAME: each begins behind a line `-- @statement NAME`."""
    found: dict[str, str] = {}
    for path in sorted((CONTRACT / store).glob("*.sql")):
        parts = re.split(r"^-- @statement (\w+)$", path.read_text("utf-8"), flags=re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            found[f"{path.stem}/{name}"] = text.strip()
    return found
