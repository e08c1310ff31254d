"""Journals of jobs, and signals: contract/steps.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from millpond.steps import EntriesFrom, EntriesPage, Entry, NewEntry, Signal, Signalled
from millpond.stores.redis.connection import MOST_CHANGES, Argument, Connection, chunks
from millpond.stores.redis.notifier import Notifier
from millpond.stores.redis.wire import pack_entry, to_bytes, to_id, unpack_entry

STATUSES: Final[tuple[Literal["ok", "ended", "full", "none"], ...]] = ("ok", "ended", "full", "none")


def entry_items(entries: Sequence[NewEntry]) -> list[Argument]:
    """As scripts take entries."""
    return [part for each in entries for part in (each.name, pack_entry(each.meta, each.body))]


def entries(connection: Connection, items: Sequence[EntriesFrom]) -> Sequence[EntriesPage | None]:
    """One call after the other: what one has left of the room is the next one's."""
    pages: list[EntriesPage | None] = []
    head: list[int] = []
    for some in chunks(items):
        asked = [part for item in some for part in (to_bytes(item.id), item.after)]
        room, *told = connection.script("entries", None, head, asked)
        pages += [_page(each) for each in told]
        if any(page and page.entries for page in pages):
            head = [room]
    return pages


def _page(told: Sequence[Any] | None) -> EntriesPage | None:
    if told is None:
        return None
    more, *fields = told
    found = [Entry(n, name.decode(), *unpack_entry(holds)) for n, name, holds in chunks(fields, 3)]
    return EntriesPage(found, more == 1)


def signal(connection: Connection, notifier: Notifier, items: Sequence[Signal]) -> Sequence[Signalled]:
    def send(some: Sequence[Signal]) -> list[Signalled]:
        asked: list[Argument] = []
        for item in some:
            asked += [to_bytes(item.id) if item.id else b"", item.queue or b"", item.key or b"", *entry_items([item])]
        return [_signalled(notifier, *told) for told in connection.script("signal", None, [], asked)]

    return connection.in_chunks(items, send, MOST_CHANGES, lambda item: item.size)


def _signalled(notifier: Notifier, status: int, id: bytes | None = None, woken: bytes | None = None) -> Signalled:
    if woken:
        notifier.ring("work", woken.decode())
    return Signalled(STATUSES[status], to_id(id) if id else None)
