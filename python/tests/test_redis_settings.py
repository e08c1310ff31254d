"""Settings of queues that are split into partitions, with several clients at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest

from millpond.contract import DEFAULTS
from millpond.ids import new_id
from millpond.queues import GroupLimits
from millpond.store import Store
from millpond.stores.redis import RedisStore
from tests.stores import WAIT, job, server

PARTITIONS = 3
UNSET = {
    b"paused": b"0", b"attempts": b"%d" % DEFAULTS["queue"]["attempts"], b"keepDead": b"%d" % DEFAULTS["queue"]["keepDead"],
}  # fmt: skip
"""What a partition keeps nothing for."""


@pytest.fixture
def clients() -> Iterator[Sequence[RedisStore]]:
    prefix = f"py-{new_id()[-12:]}"
    opened = [RedisStore(server("redis"), prefix, partitions=PARTITIONS) for _ in range(2)]
    yield opened
    for each in opened:
        each.close()


class Turns:
    """Lets the calls that change partitions go one at a time: those of which client comes next is said by the order."""

    def __init__(self, order: Sequence[int]) -> None:
        self._left, self._over = list(order), set[int]()
        self._moved = threading.Condition()

    def run(self, client: int, store: RedisStore, change: Callable[[Store], object]) -> None:
        connection: Any = store._connection
        on_part = connection.on_part

        def in_turn(name: str, *given: Any) -> Any:
            if name not in ("configure", "limit-group"):
                return on_part(name, *given)
            with self._moved:
                assert self._moved.wait_for(lambda: self._next() in (None, client), WAIT)
                answer = on_part(name, *given)
                del self._left[:1]
                self._moved.notify_all()
                return answer

        connection.on_part = in_turn
        try:
            change(store)
        finally:
            del connection.on_part
            with self._moved:
                self._over.add(client)
                self._moved.notify_all()

    def _next(self) -> int | None:
        self._left = [each for each in self._left if each not in self._over]
        return self._left[0] if self._left else None


def kept(store: RedisStore, queue: str, name: str) -> list[dict[bytes, bytes]]:
    """What the partitions have under a key of theirs."""
    told = [store._connection.command("HGETALL", part.key(name)) for part in store._registry.parts(queue)]
    return [each if isinstance(each, dict) else dict(zip(each[::2], each[1::2], strict=True)) for each in told]


CHANGES: dict[str, tuple[Callable[[Store, str], object], Callable[[Store, str], object]]] = {
    "code": (
        lambda store, queue: store.configure(queue, running=3, group_running=1, paused=True),
        lambda store, queue: store.configure(queue, running=9, capacity=12, paused=False),
    ),
    "operator": (
        lambda store, queue: store.configure(queue, running=3, attempts=2),
        lambda store, queue: store.configure(queue, by="operator", running=6, keep_dead=1000),
    ),
    "ungrouped": (
        lambda store, queue: store.limit_group(queue, "", GroupLimits(running=3)),
        lambda store, queue: store.limit_group(queue, "", GroupLimits(running=6, weight=2)),
    ),
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_two_changes_at_once_leave_all_partitions_alike(
    clients: Sequence[RedisStore], changes: tuple[Callable[[Store, str], object], Callable[[Store, str], object]]
) -> None:
    for number, own in enumerate(combinations(range(2 * PARTITIONS), PARTITIONS)):
        order, queue = [0 if at in own else 1 for at in range(2 * PARTITIONS)], f"q{number}"
        clients[0].configure(queue, running=6, capacity=99)
        turns = Turns(order)
        threads = [
            threading.Thread(target=turns.run, args=(at, clients[at], lambda store, at=at: changes[at](store, queue)))
            for at in range(2)
        ]  # fmt: skip
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        queues, limits = kept(clients[0], queue, "queue"), kept(clients[0], queue, "limits")
        for name in (b"code", b"operator", b"paused", b"attempts", b"keepDead", b"limits", b"turn", b"ownTurn"):
            assert len({each.get(name, UNSET.get(name)) for each in queues}) == 1, (order, name, queues)
        report = clients[1].settings(queue)
        assert report and sum(int(each[b"capacity"]) for each in queues) == report.values["capacity"], order
        assert sum(int(each[b"running"]) for each in limits) == report.values["running"], order
        ungrouped = clients[1].groups(queue, 1, group="")
        assert all(each.limits is None or each.limits.running in (3, 6) for each in ungrouped), (order, ungrouped)


def test_a_push_is_stored_though_lost_settings_cannot_come_back(clients: Sequence[RedisStore]) -> None:
    other, prefix = clients[0], clients[0]._registry.prefix
    one = RedisStore(server("redis"), prefix, partitions=1)
    one.configure("q", running=2)
    for key in one._connection.client.scan_iter(f"*{prefix}*"):
        one._connection.client.delete(key)
    # Too many partitions for the limit.
    other.push([job()])
    assert [each.status for each in one.push([job()])] == ["pushed"]
    one.close()
