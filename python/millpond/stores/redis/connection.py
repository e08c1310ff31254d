"""Calls to the server: see "Calling a script", "Lost answers" and "Errors" in contract/redis/README.md."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

import msgpack
import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from millpond.contract import read
from millpond.errors import LostAnswer, MillpondError
from millpond.store import Clock
from millpond.stores.redis.routing import Part, shared_key

T = TypeVar("T")

CALL_TIMEOUT: Final = 10.0
WAIT: Final = 0.05
MOST_ITEMS: Final = 500
Argument: TypeAlias = bytes | str | int

# The call did nothing, and may succeed later.
_PASSING: Final = (
    exceptions.BusyLoadingError, exceptions.ReadOnlyError, exceptions.MasterDownError, exceptions.ClusterDownError,
    exceptions.TryAgainError, exceptions.AskError,
)  # fmt: skip
_GONE: Final = (exceptions.ConnectionError, exceptions.TimeoutError)
_PASSING_TEXTS: Final = ("NOREPLICAS", "BUSY")


@dataclass(frozen=True)
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
    keys = re.search(r"^-- KEYS: (.*(?:\n-- {6,}.*)*)$", source, flags=re.MULTILINE)
    return Script(name, text, hashlib.sha1(text.encode()).hexdigest(), tuple(keys[1].replace("\n--", " ").split()) if keys else ())


class Connection:
    def __init__(self, url: str, prefix: str, origin: str, clock: Clock | None) -> None:
        self._origin, self._clock, self.closed = origin, clock, False
        self.channel = shared_key(prefix, "bells")
        self.settle: Callable[[Part, Sequence[Any]], None] = lambda _part, _told: None
        """Does what scripts tell about links."""
        # The library must repeat nothing by itself: it would not say so to the script.
        # Any, since the library leaves half of its methods without types.
        try:
            self.client: Any = redis.Redis.from_url(
                url, protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=CALL_TIMEOUT / 2
            )
        except ValueError:
            # Its message has a part of the URL, perhaps of the password.
            raise MillpondError("InvalidOption", "the URL cannot be read: percent-encode what is special in user and password") from None
        if self.client.get_encoder().decode_responses:
            raise MillpondError("InvalidOption", "answers are bytes: leave decode_responses out of the URL")

    def now(self) -> int | None:
        return self._clock() if self._clock else None

    def on_part(
        self, name: str, part: Part, head: Sequence[object] = (), items: Sequence[Argument] = (), again: bool = False
    ) -> Any:
        """Calls a script on a partition. `again`: the same call may have taken effect before."""
        answer, links = self.told(name, part, head, items, again)
        if links:
            self.settle(part, links)
        return answer

    def told(
        self, name: str, part: Part, head: Sequence[object] = (), items: Sequence[Argument] = (), again: bool = False
    ) -> tuple[Any, Sequence[Any]]:
        """As `on_part`, and what the script tells about links, which is left to the caller."""
        called = script(name)
        packed = msgpack.packb([self.now(), self.channel, self._origin, part.queue, part.name, *head])
        keys = [part.key(key) for key in called.keys]
        answer = self.repeat(lambda lost: self._once(called, keys, [packed, "1" if lost or again else "0", *items]))
        has_links = bool(answer) and isinstance(answer[-1], list) and answer[-1][:1] == [b"links"]
        return (answer[:-1], answer[-1][1:]) if has_links else (answer, [])

    def on_keys(self, name: str, keys: Sequence[str], items: Sequence[Argument]) -> Any:
        """Calls a script that has neither a head nor a mark for repetition."""
        return self.repeat(lambda _: self._once(script(name), keys, items))

    def on_many_keys(self, name: str, calls: Sequence[tuple[Sequence[str], Sequence[Argument]]]) -> list[Any]:
        """Many calls of such a script at once."""

        def once(_: bool) -> list[Any]:
            called = script(name)
            pipeline = self.client.pipeline(transaction=False)
            pipeline.execute_command("SCRIPT LOAD", called.text)
            for keys, items in calls:
                pipeline.execute_command("EVALSHA", called.sha, len(keys), *keys, *items)
            answers: list[Any] = pipeline.execute()
            return answers[1:]

        return self.repeat(once)

    def command(self, *words: Argument) -> Any:
        return self.repeat(lambda _: self.client.execute_command(*words))

    def repeat(self, call: Callable[[bool], T]) -> T:
        """Makes a call until it is answered. It is told whether an answer was lost before."""
        end, lost = time.monotonic() + CALL_TIMEOUT, False
        while True:
            if self.closed:
                raise MillpondError("Closed", "the store is closed")
            try:
                return call(lost)
            except exceptions.RedisError as error:
                passing = isinstance(error, _PASSING) or str(error).startswith(_PASSING_TEXTS)
                gone = isinstance(error, _GONE) and not passing and not isinstance(error, exceptions.AuthenticationError)
                lost = lost or gone
                if not (passing or gone) or time.monotonic() > end:
                    kind = LostAnswer if lost and (passing or gone) else MillpondError
                    raise kind(_code_of(error), str(error)) from error
            time.sleep(WAIT)

    def _once(self, called: Script, keys: Sequence[str], items: Sequence[Argument]) -> Any:
        try:
            return self.client.execute_command("EVALSHA", called.sha, len(keys), *keys, *items)
        except exceptions.NoScriptError:
            return self.client.execute_command("EVAL", called.text, len(keys), *keys, *items)


def _code_of(error: exceptions.RedisError) -> str:
    text = str(error)
    if isinstance(error, exceptions.OutOfMemoryError) or text.startswith(("OOM", "MISCONF")):
        return "StoreFull"
    if text.startswith("BUSY"):
        return "StoreBusy"
    unavailable = isinstance(error, (*_PASSING, *_GONE, exceptions.NoPermissionError)) or text.startswith("NOREPLICAS")
    return "StoreUnavailable" if unavailable or not isinstance(error, exceptions.ResponseError) else "StoreFailed"


def chunks(items: Sequence[T], size: int = MOST_ITEMS) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
