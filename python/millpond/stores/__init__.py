"""A folder per store. `open_store` picks one by the scheme of a URL, and loads no other."""

from __future__ import annotations

from typing import Any, Final

from millpond.errors import MillpondError
from millpond.store import Store

SCHEMES: Final = ("sqlite:", "postgres:", "postgresql:", "redis:", "rediss:")


def open_store(url: str, **options: Any) -> Store:
    """`sqlite:PATH`, `postgres://…` (option `schema`), `redis://…` (options `prefix`, `partitions`).

    Errors: `UnknownScheme`, `DriverMissing`.
    """
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
