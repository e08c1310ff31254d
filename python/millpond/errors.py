"""The one error class. Its codes, their meaning and what to do about them: contract/errors.json."""

from __future__ import annotations

import json
from typing import Final

from millpond.contract import CONTRACT

CODES: Final[frozenset[str]] = frozenset(json.loads((CONTRACT / "errors.json").read_text("utf-8")))


class MillpondError(Exception):
    """What went wrong, as a code that programs can compare and a sentence that people can read."""

    def __init__(self, code: str, message: str) -> None:
        if code not in CODES:
            raise ValueError(f"{code} is not in contract/errors.json")
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class LostAnswer(MillpondError):
    """The call was given up. It may have taken effect."""
