from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from millpond.jobs import FINAL, Record, RestoreOutcome
from millpond.once import NEVER
from millpond.stores.sqlite.find import BODIES
from millpond.stores.sqlite.graphs import Endings, Standing, come, link, standing_of_record
from millpond.stores.sqlite.journal import add_entries
from millpond.stores.sqlite.once import has_holder, mark, restore_key
from millpond.stores.sqlite.transaction import Transaction
from millpond.stores.wire import with_lines


def restore(tx: Transaction, records: Sequence[Record]) -> Sequence[RestoreOutcome]:
    endings = Endings(tx)
    outcomes = [_restore(tx, record, endings) for record in records]
    endings.settle()
    return outcomes


def _restore(tx: Transaction, record: Record, endings: Endings) -> RestoreOutcome:
    if record.state != "blocked":
        return _store(tx, record, endings, None)
    if tx.row("push/existing", id=record.id, queue=record.queue, key=record.key):
        return "existing"
    standing = standing_of_record(tx, record)
    if not standing.blocked:
        due_at = max(tx.now, record.due_at)
        record = replace(record, due_at=due_at, state="scheduled" if due_at > tx.now else "waiting")
    return _store(tx, record, endings, standing)


def _store(tx: Transaction, record: Record, endings: Endings, standing: Standing | None) -> RestoreOutcome:
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
    if record.entries:
        add_entries(tx, tx.value("graphs/last"), record.entries)
    restore_key(tx, queue, record, is_follower)
    come(tx, queue, record.id)
    if standing:
        link(tx, queue, standing, endings)
    if record.state == "waiting":
        tx.line_up(record.queue)
    if record.state in FINAL:
        # Jobs may have waited for it.
        endings.look(queue, [record.id])
        endings.ended(record.id, record.state, True)
    return "restored"
