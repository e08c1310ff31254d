"""Whether the data are of the version that the scripts know: contract/redis/README.md, "The version"."""

from __future__ import annotations

from millpond.errors import MillpondError
from millpond.stores.redis.connection import Connection


def check_version(connection: Connection) -> None:
    found, known = connection.script("opened")
    if found > known:
        raise MillpondError("StoreVersion", f"the data are of version {found}, made by a newer Millpond: upgrade this one")
    if found < known:
        raise MillpondError("StoreVersion", f"the data are of version {found}, which this Millpond cannot read: use another prefix")
