"""Durations in log-spaced buckets. Formula and cases: contract/vectors/histogram.json."""

from __future__ import annotations

import math
from collections.abc import Mapping

Buckets = dict[int, int]
"""Bucket → count."""


def bucket_of(ms: float) -> int:
    microseconds = math.floor(ms * 1000 + 0.5)
    return 0 if microseconds < 1 else 1 + math.floor(8 * math.log2(microseconds))


def bounds_of(bucket: int) -> tuple[float, float]:
    """From the first, up to and not including the second, in ms."""
    return (0, 0.001) if bucket == 0 else (2 ** ((bucket - 1) / 8) / 1000, 2 ** (bucket / 8) / 1000)


def middle_of(bucket: int) -> float:
    """The ms that stand for the bucket: its geometric middle."""
    return 0 if bucket == 0 else float(2 ** ((bucket - 0.5) / 8) / 1000)


def percentile(buckets: Mapping[int, int], share: float) -> int | None:
    """The bucket of the value below or at which that share of all values is; none: there are no values."""
    total = sum(buckets.values())
    rank, seen = max(1, math.ceil(total * share)), 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if total > 0 and seen >= rank:
            return bucket
    return None


def merge(into: Buckets, more: Mapping[int, int]) -> Buckets:
    for bucket, count in more.items():
        into[bucket] = into.get(bucket, 0) + count
    return into
