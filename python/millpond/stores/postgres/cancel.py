from __future__ import annotations

from collections.abc import Sequence

from millpond.jobs import LIVE, State
from millpond.stores.postgres.calls import Calls


def cancel(calls: Calls, ids: Sequence[str]) -> Sequence[State | None]:
    states = [answer.rpartition(" ")[2] for answer in calls.answer("cancel", ids=list(ids), now=calls.now)]
    return ["cancelled" if state in LIVE else state or None for state in states]
