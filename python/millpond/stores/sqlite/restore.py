from __future__ import annotations

import json

from millpond.jobs import Record, RestoreOutcome
from millpond.once import NEVER
from millpond.stores.sqlite.find import BODIES
from millpond.stores.sqlite.once import has_holder, mark, restore_key
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import with_lines


def restore(tx: Transaction, record: Record) -> RestoreOutcome:
    queue = tx.made_queue(record.queue)
    if record.unique or record.follows:
        mark(tx, queue)
    is_follower = record.follows and record.state == "scheduled" and has_holder(tx, record)
    given = vars(record) | {"error": record.error and record.error.to_json()}
    given |= {"log": json.dumps(with_lines((), record.log)) if record.log else None}
    given |= {"remember": record.unique and record.unique.stored, "follow_due": record.due_at if is_follower else None}
    given |= {"due_at": NEVER} if is_follower else {}
    for name, encoding in BODIES.items():
        body = getattr(record, name)
        given |= {name: body and body.body, encoding: body and body.encoding}
    if not tx.changes("restore/restore", **given):
        return "existing"
    tx.move(record.queue, None, record.state)
    restore_key(tx, queue, record, is_follower)
    if record.state == "waiting":
        tx.line_up(record.queue)
    return "restored"
