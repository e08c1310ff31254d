"""What the partitions of a queue share: contract/redis/README.md, "configure"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millpond.errors import MillpondError
from millpond.rate import Rate


def share_of(total: int | None, index: int, partitions: int) -> int | None:
    """They differ by one at most."""
    return total and (total + partitions - 1 - index) // partitions


def rate_list(rate: Rate, index: int = 0, partitions: int = 1) -> list[int | None]:
    """As scripts keep it: of several partitions, each starts its share, and keeps the burst of the whole queue beside its own."""
    if partitions == 1:
        return [rate.count, rate.per, rate.burst]
    return [rate.count, rate.per * partitions, share_of(rate.most_at_once, index, partitions), rate.burst]


def rate_in(kept: Any, partitions: int = 1) -> Rate | None:
    """The rate of the whole queue, by what one partition keeps."""
    if not kept:
        return None
    count, per, *bursts = kept
    return Rate(count, per // partitions, (bursts[-1] if bursts else None) or None)


def check_shared(settings: Mapping[str, Any], names: tuple[str, ...], partitions: int) -> None:
    """Each partition has a share of at least 1."""
    for name in names:
        given = settings.get(name)
        total = given.most_at_once if isinstance(given, Rate) else given
        if total is not None and total < partitions:
            what = f"the burst of {name}" if isinstance(given, Rate) else name
            message = f"{what} is {total}; the queue has {partitions} partitions, and each has its share"
            raise MillpondError("InvalidOption", message)


def settings_of(settings: Mapping[str, Any], index: int, partitions: int) -> dict[str, Any]:
    """What a partition gets of a queue's settings."""
    shares: dict[str, Any] = {
        name: share_of(settings[name], index, partitions) for name in ("capacity", "running") if name in settings
    }
    if rate := settings.get("rate"):
        shares["rate"] = rate_list(rate, index, partitions)
    return {**settings, **shares}

