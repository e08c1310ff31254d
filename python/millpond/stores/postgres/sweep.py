from __future__ import annotations

from millpond.jobs import Lost, Swept
from millpond.stores.postgres.calls import Calls
from millpond.stores.wire import read


def sweep(calls: Calls, limit: int) -> Swept:
    told = calls.answer("sweep", limit=limit, now=calls.now)
    return read(Swept, told, lost=[Lost(**each) for each in told["lost"]])
