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

T = TypeVar("T")
A = TypeVar("A")

CALL_TIMEOUT: Final = 10.0
WAIT: Final = 0.05
MOST_ITEMS: Final = 500
SMALL: Final = 2**20
"""Bytes: no `proto-max-bulk-len` of a server is smaller."""
MOST_LOST: Final = 3
"""Connections that end at the same call with a longer argument, where the server does not tell its limit."""
MOST_CHANGES: Final = 200
"""Items of calls that read and write much for each, such as `cancel`."""
MOST_BYTES: Final = 4_194_304
"""Bytes of a call whose items have a size, about: scripts leave more than that to another call."""
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


@cache
def script(name: str) -> Script:
    source = read(f"redis/{name}.lua")
    text = re.sub(r"^-- @include (\S+)$", lambda match: read(f"redis/{match[1]}"), source, flags=re.MULTILINE)
    return Script(name, text, hashlib.sha1(text.encode()).hexdigest())


class Connection:
    def __init__(self, url: str, prefix: str, origin: str, clock: Clock | None) -> None:
        self._origin, self._clock, self.closed = origin, clock, False
        self.start = f"{{{prefix}}}:"
        """With which all keys begin."""
        self.channel = f"{self.start}bells"
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

    def script(
        self, name: str, queue: str | None = None, head: Sequence[object] = (), items: Sequence[Argument] = (), again: bool = False
    ) -> Any:
        """Calls a script. `queue`: that it is at; None: it finds the queues by the jobs. `again`: the same call may have taken effect before."""
        called = script(name)
        packed = msgpack.packb([self.now(), self.channel, self._origin, queue, *head])
        return self.repeat(lambda lost: self._once(called, [packed, "1" if lost or again else "0", *items]), [packed, *items])

    def in_chunks(
        self, items: Sequence[T], call: Callable[[Sequence[T]], Sequence[A]], most: int = MOST_ITEMS,
        size_of: Callable[[T], int] = lambda _: 0,
    ) -> list[A]:  # fmt: skip
        """An answer per item, in as many calls as they take. `call` answers the first ones at least: where jobs are large, the others are
        sent again. `size_of`: bytes of an item, about."""
        answers: list[A] = []
        while len(answers) < len(items):
            some, size = items[len(answers) : len(answers) + most], 0
            for count, item in enumerate(some):
                size += size_of(item)
                if size > MOST_BYTES and count > 0:
                    some = some[:count]
                    break
            more = call(some)
            if not more:
                raise MillpondError("StoreFailed", "the server answered nothing")
            answers += more
        return answers

    def command(self, *words: Argument) -> Any:
        return self.repeat(lambda _: self.client.execute_command(*words))

    def repeat(self, call: Callable[[bool], T], arguments: Sequence[Argument] = ()) -> T:
        """Makes a call until it is answered. It is told whether an answer was lost before."""
        end, lost, count = time.monotonic() + CALL_TIMEOUT, False, 0
        while True:
            if self.closed:
                raise MillpondError("Closed", "the store is closed")
            try:
                return call(lost)
            except exceptions.RedisError as error:
                passing = isinstance(error, _PASSING) or str(error).startswith(_PASSING_TEXTS)
                gone = isinstance(error, _GONE) and not passing and not isinstance(error, exceptions.AuthenticationError)
                lost, count = lost or gone, count + gone
                if gone and self._is_too_long(arguments, count):
                    raise MillpondError("PayloadTooLarge", "an argument of the call is over proto-max-bulk-len of Redis") from error
                if not (passing or gone) or time.monotonic() > end:
                    kind = LostAnswer if lost and (passing or gone) else MillpondError
                    raise kind(_code_of(error), str(error)) from error
            time.sleep(WAIT)

    def _is_too_long(self, arguments: Sequence[Argument], lost: int) -> bool:
        """The server closes the connection at such an argument. The system may reset it before its answer was read."""
        longest = max((len(each.encode() if isinstance(each, str) else each) for each in arguments if not isinstance(each, int)), default=0)
        if longest <= SMALL:
            return False
        try:
            known = [int(value) for value in self.client.config_get("proto-max-bulk-len").values()]
        except exceptions.ResponseError:
            known = []
        except exceptions.RedisError:
            return False
        return longest > min(known) if known else lost >= MOST_LOST

    def _once(self, called: Script, items: Sequence[Argument]) -> Any:
        try:
            return self.client.execute_command("EVALSHA", called.sha, 1, self.start, *items)
        except exceptions.NoScriptError:
            return self.client.execute_command("EVAL", called.text, 1, self.start, *items)


def _code_of(error: exceptions.RedisError) -> str:
    text = str(error)
    if isinstance(error, exceptions.OutOfMemoryError) or text.startswith(("OOM", "MISCONF")):
        return "StoreFull"
    if text.startswith("BUSY"):
        return "StoreBusy"
    if re.search("Protocol error: invalid (multi)?bulk length", text):
        return "PayloadTooLarge"
    unavailable = isinstance(error, (*_PASSING, *_GONE, exceptions.NoPermissionError)) or text.startswith("NOREPLICAS")
    return "StoreUnavailable" if unavailable or not isinstance(error, exceptions.ResponseError) else "StoreFailed"


def chunks(items: Sequence[T], size: int = MOST_ITEMS) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
