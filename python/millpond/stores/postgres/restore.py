from __future__ import annotations

import json
from collections.abc import Sequence

from millpond.jobs import Record, RestoreOutcome
from millpond.stores.postgres.calls import Calls
from millpond.stores.postgres.wire import fields_of


def restore(calls: Calls, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
    given = json.dumps([fields_of(record) for record in records])
    outcomes: Sequence[RestoreOutcome] = calls.answer("restore", records=given, now=calls.now)
    return outcomes
