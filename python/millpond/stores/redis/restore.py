from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from millpond.errors import MillpondError
from millpond.jobs import Record, RestoreOutcome
from millpond.stores.redis.awaited import Awaited
from millpond.stores.redis.connection import chunks
from millpond.stores.redis.links import link_of
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.registry import Registry, group_by_part
from millpond.stores.redis.routing import partition_of
from millpond.stores.redis.wire import encoded, pack_error, to_bytes


def restore(registry: Registry, notifier: Notifier, awaited: Awaited, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
    outcomes: dict[int, RestoreOutcome] = {}
    for queue in dict.fromkeys(record.queue for record in records):
        left = [at for at, record in enumerate(records) if record.queue == queue]
        floor = None if queue in registry.known else registry.register(queue)
        left = _restore(registry, awaited, queue, records, left, floor, outcomes)
        # The queue is new or was removed, and may have other partitions now.
        if left and _restore(registry, awaited, queue, records, left, registry.register(queue), outcomes):
            raise MillpondError("StoreFailed", f"the queue {queue} cannot be made")
        notifier.ring("work", queue)
    return [outcomes[at] for at in range(len(records))]


def _restore(
    registry: Registry, awaited: Awaited, queue: str, records: Sequence[Record], indexes: Sequence[int], floor: int | None,
    outcomes: dict[int, RestoreOutcome],
) -> list[int]:
    """The answer is the jobs of which nothing was stored."""
    parts, again = registry.parts(queue), list[int]()
    if len(parts) > 1 and any(None not in (records[at].key, records[at].group) for at in indexes):
        raise MillpondError("NotSupported", f"a job of {queue}, which has partitions, has a key and a group")
    routed = ((parts[partition_of(each.id, each.key, each.group, len(parts))], at) for at in indexes for each in [records[at]])
    for part, chunk in [(part, chunk) for part, chosen in group_by_part(routed).items() for chunk in chunks(chosen)]:
        items = [each for at in chunk for each in _arguments(records[at])]
        # A blocked job waits for all of its parents, until it is found that one has ended.
        links = [
            link_of(parent, records[at].id, part)
            for at in chunk if records[at].state == "blocked" for parent in dict.fromkeys(records[at].after)
        ]  # fmt: skip
        if links:
            awaited.add(links)
        answer = registry.connection.on_part("restore", part, [floor, len(parts)], items)
        if not answer:
            again += chunk
            continue
        if not answer[0]:
            registry.confirm(part)
        for at, outcome in zip(chunk, answer[1:], strict=True):
            outcomes[at] = "existing" if outcome else "restored"
        if links:
            awaited.link_known(links)
        awaited.arrived([records[at].id for at in chunk])
    return again


def _arguments(record: Record) -> tuple[bytes, ...]:
    claim = [record.state, record.fence, record.attempt, record.due_at, record.started_at or 0, record.finished_at or 0]
    kept: list[Any] = [*claim, record.worker, record.pushed_at, record.priority, record.attempts, record.group]
    kept += [record.timeout, record.key, record.trace, record.cost, record.unique and record.unique.stored, record.follows]
    kept.append(record.on_dead == "run")
    facts = [False if each is None else each for each in kept]
    error = pack_error(record.error) if record.error else b""
    return (
        to_bytes(record.id), msgpack.packb(facts), encoded(record.data), encoded(record.result), encoded(record.progress), error,
        "\n".join(record.log).encode(), b"".join(map(to_bytes, dict.fromkeys(record.after))),
    )  # fmt: skip
