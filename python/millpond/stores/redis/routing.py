"""Keys of Redis: queues divide into partitions, which have a hash tag each. Cases: vectors/routing.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BUCKETS: Final = 64


def hash_of(text: str) -> int:
    """32-bit FNV-1a over UTF-8."""
    value = 2_166_136_261
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 16_777_619 & 0xFFFFFFFF
    return value


def partition_of(id: str, key: str | None, group: str | None, partitions: int) -> int:
    """All jobs of a group are in one partition, and all of a key."""
    return hash_of(next(each for each in (group, key, id) if each is not None)) % partitions


def group_index(group: str, partitions: int) -> int:
    return hash_of(group) % partitions


@dataclass(frozen=True)
class Part:
    """A partition of a queue."""

    prefix: str
    bucket: int
    queue: str
    index: int

    @property
    def name(self) -> str:
        return f"{self.queue}#{self.index}" if self.index else self.queue

    def key(self, name: str) -> str:
        """The full name of a key; names with `@` belong to the bucket."""
        tag = tag_of(self.prefix, self.bucket)
        return f"{tag}:{name[1:]}" if name.startswith("@") else f"{tag}:{self.name}:{name}"


def tag_of(prefix: str, bucket: int) -> str:
    return f"{{{prefix}:{bucket}}}"


def part_of(prefix: str, queue: str, index: int) -> Part:
    return Part(prefix, (hash_of(queue) + index) % BUCKETS, queue, index)


def shared_key(prefix: str, name: str) -> str:
    """What all queues share: `queues` (the registry), `floor`, and the channel `bells`."""
    return f"{{{prefix}}}:{name}"


def part_named(prefix: str, name: str) -> Part:
    """By its name alone."""
    queue, mark, index = name.rpartition("#")
    return part_of(prefix, queue, int(index)) if mark else part_of(prefix, name, 0)


def named_part(prefix: str, bucket: int, name: str) -> Part:
    queue, mark, index = name.rpartition("#")
    return Part(prefix, bucket, queue, int(index)) if mark else Part(prefix, bucket, name, 0)
