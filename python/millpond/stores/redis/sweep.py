from __future__ import annotations

from millpond.jobs import Lost, Swept
from millpond.schedules import MOST_DUE, DueSchedules
from millpond.stores.redis.connection import Connection, chunks
from millpond.stores.redis.schedules import records_of
from millpond.stores.redis.wire import start, to_id


def sweep(connection: Connection, limit: int) -> tuple[Swept, list[str]]:
    """What was done, and the queues in which jobs wait now."""
    now, promoted, expired, more, next_due, queues, ended, due, changed = connection.script("sweep", None, [limit, MOST_DUE])
    lost = [
        Lost(to_id(id), queue.decode(), attempt, "dead" if dead else "waiting") for id, queue, attempt, dead in chunks(ended, 4)
    ]
    schedules = DueSchedules(now, records_of(due, now)) if due else None
    swept = Swept(
        lost=lost, promoted=promoted, expired=expired, more=more == 1, next_due=start(next_due), queues=queues, schedules=schedules
    )
    return swept, [queue.decode() for queue, came in chunks(changed, 2) if came]
