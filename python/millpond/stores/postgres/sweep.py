from __future__ import annotations

from millpond.jobs import Lost, Swept
from millpond.schedules import DueSchedules
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.schedules import record_of
from millpond.stores.wire import read


def sweep(calls: Calls, limit: int) -> Swept:
    told = calls.answer("sweep", limit=limit, now=calls.now)
    due = told["schedules"] and DueSchedules(told["schedules"]["now"], [record_of(each) for each in told["schedules"]["due"]])
    return read(Swept, told, schedules=due, lost=[Lost(**each) for each in told["lost"]])
