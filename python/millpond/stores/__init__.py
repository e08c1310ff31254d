"""A folder per store. `open_store` picks one by the scheme of a URL, and loads no other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from millpond.errors import MillpondError
from millpond.store import Store

KINDS: Final = {
    **{"sqlite": "sqlite", "postgres": "postgres", "postgresql": "postgres", "redis": "redis", "rediss": "redis"},
}
SCHEMES: Final = ("sqlite:", "postgres:", "postgresql:", "redis:", "rediss:")


def open_store(url: str | Sequence[str], **options: Any) -> Store:
    """`sqlite:PATH`, `postgres://…` (option `schema`), `redis://…` (option `prefix`). Several URLs of one kind are one store
    whose queues are spread over them: contract/shards.md. `shards=8` spreads them over that many prefixes of one Redis.

    Errors: `UnknownScheme`, `DriverMissing`, `InvalidOption`, `ShardMismatch`.
    """
    shards = options.pop("shards", None)
    urls = [url] if isinstance(url, str) else list(url)
    if shards is not None:
        if len(urls) > 1 or not urls[0].startswith("redis"):
            raise MillpondError("InvalidOption", "shards is an option of one Redis; of other stores give a list of URLs")
        prefix = options.pop("prefix", "millpond")
        each = [(urls[0], options | {"prefix": f"{prefix}.{shard}"}) for shard in range(shards)]
    else:
        each = [(one, options) for one in urls]
    kinds = {KINDS.get(one.partition(":")[0]) for one in urls}
    if not each or (len(each) > 1 and (len(kinds) > 1 or None in kinds)):
        raise MillpondError("InvalidOption", "a list of stores has URLs of one kind")
    if len(each) == 1:
        return _open_one(each[0][0], **each[0][1])
    from millpond.stores.shards import ShardedStore

    return ShardedStore([partial(_open_one, one, **own) for one, own in each])


def _open_one(url: str, **options: Any) -> Store:
    scheme, _, rest = url.partition(":")
    try:
        match scheme:
            case "sqlite":
                from millpond.stores.sqlite import SqliteStore

                return SqliteStore(rest, **options)
            case "postgres" | "postgresql":
                from millpond.stores.postgres import PostgresStore

                return PostgresStore(url, **options)
            case "redis" | "rediss":
                from millpond.stores.redis import RedisStore

                return RedisStore(url, **options)
    except ImportError as error:
        raise MillpondError("DriverMissing", f"install psycopg for PostgreSQL, redis for Redis: {error}") from error
    raise MillpondError("UnknownScheme", f"{scheme}: is none of {' '.join(SCHEMES)}")
