from __future__ import annotations

import json
from collections.abc import Sequence

from millpond.jobs import JobUpdate, UpdateOutcome
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.wire import tagged
from millpond.stores.wire import camel


def update(calls: Calls, items: Sequence[JobUpdate]) -> Sequence[UpdateOutcome]:
    given = [{camel(name): value for name, value in vars(item).items()} | {"data": tagged(item.data)} for item in items]
    outcomes: Sequence[UpdateOutcome] = calls.answer("update", items=json.dumps(given), now=calls.now)
    return outcomes
