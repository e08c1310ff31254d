from __future__ import annotations

import json

from millpond.jobs import Record, RestoreOutcome
from millpond.stores.sqlite.find import BODIES
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import with_lines


def restore(tx: Transaction, record: Record) -> RestoreOutcome:
    tx.made_queue(record.queue)
    given = vars(record) | {"error": record.error and record.error.to_json()}
    given |= {"log": json.dumps(with_lines((), record.log)) if record.log else None}
    for name, encoding in BODIES.items():
        body = getattr(record, name)
        given |= {name: body and body.body, encoding: body and body.encoding}
    if not tx.changes("restore/restore", **given):
        return "existing"
    tx.move(record.queue, None, record.state)
    if record.state == "waiting":
        tx.line_up(record.queue)
    return "restored"
