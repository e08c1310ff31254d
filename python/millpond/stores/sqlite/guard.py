"""Notices what SQLite does not tell of while a file is open.

- Another program replaced, renamed, linked or removed the file or its log. SQLite would go on writing to a file that nobody finds again.
- Another SQLite library of this process has the file open. When it closes the file, the system drops the locks of ours.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from millpond.errors import MillpondError

LOOK_EVERY: Final = 1.0
"""Seconds between looks for other libraries; longer where a look takes long, so that it costs 1 % of the time at most."""
_DRAFT: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16}")


class FileGuard:
    def __init__(self, path: str) -> None:
        """Of a database with an open connection that has used it."""
        self._path = os.path.realpath(path)
        self._files = {name: _look(name) for name in (self._path, f"{self._path}-wal")}
        self._error: MillpondError | None = None
        self._next_look = 0.0
        self.check()

    @property
    def is_shared(self) -> bool:
        """SQLite removes the log with what it takes for the last connection: while another library writes to it, ours stays open."""
        return self._error is not None and self._error.code == "SecondLibrary"

    def check(self) -> None:
        """Before a transaction, and after its commit. Once wrong, always wrong: what was written meanwhile may be lost."""
        if self._error is not None:
            # A new one for each call: an error that is raised again keeps the frames of all calls before.
            raise MillpondError(self._error.code, self._error.message)
        try:
            for name, opened in self._files.items():
                self._check_file(name, opened)
            if time.monotonic() >= self._next_look:
                self._look_for_libraries()
        except MillpondError as error:
            self._error = error
            raise

    def _check_file(self, name: str, opened: os.stat_result) -> None:
        try:
            found = _look(name)
        except MillpondError:
            # The likeliest cause, and the better advice.
            self._look_for_libraries()
            raise
        if not os.path.samestat(found, opened):
            self._look_for_libraries()
            raise _gone(name)
        assert_one_name(name, found)

    def _look_for_libraries(self) -> None:
        begun = time.monotonic()
        # A library opens this file once, however many connections it has.
        if _times_open(f"{self._path}-shm") > 1:
            raise MillpondError(
                "SecondLibrary",
                f"another SQLite library in this process has {self._path} open, which can damage it: "
                "use the sqlite3 module, then restart the process",
            )
        ended = time.monotonic()
        self._next_look = ended + max(LOOK_EVERY, (ended - begun) * 100)


def assert_one_name(path: str, file: os.stat_result) -> None:
    """SQLite would keep a log for each name, and the logs would overwrite each other's pages."""
    if file.st_nlink > 1:
        message = f"{path} has several names (hard links): remove the others, or use symbolic links"
        raise MillpondError("StoreUnavailable", message)


def remove_drafts(path: str) -> None:
    """A crash while the file was made leaves a second name behind; another process may be making it right now."""
    file = _look(path)
    if file.st_nlink <= 1:
        return
    folder, name = os.path.split(os.path.realpath(path))
    for entry in os.listdir(folder):
        prefix, _, rest = entry.rpartition(".")
        if prefix == name and _DRAFT.fullmatch(rest):
            draft = Path(folder, entry)
            with suppress(FileNotFoundError):  # the process that made it was faster
                if os.path.samestat(draft.stat(), file):
                    draft.unlink()
    assert_one_name(path, _look(path))


def _look(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError:
        raise _gone(path) from None


def _gone(path: str) -> MillpondError:
    return MillpondError(
        "StoreUnavailable",
        f"{path} was replaced, renamed or removed while it was open: what was written since may be lost. Stop all processes "
        "that use it, put the right file there, and start them again",
    )


def _times_open(path: str) -> int:
    """By descriptors of this process; 0 where the system does not tell."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            wanted, names = os.stat(path), os.listdir(folder)
        except OSError:
            continue
        return sum(_is_open_on(int(name), wanted) for name in names if name.isdecimal())
    return 0


def _is_open_on(descriptor: int, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), wanted)
    except OSError:
        return False  # closed meanwhile
