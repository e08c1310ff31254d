"""Jobs that wait for others, and what becomes of them when those end: contract/sqlite/graphs.sql. A queue that has none runs nothing of this."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from millpond.contract import DEFAULTS
from millpond.jobs import FINAL, JobError, NewJob, OnDead, Record, Relatives, State
from millpond.stores.sqlite.once import let_follow
from millpond.stores.sqlite.transaction import Queue, Transaction

STEP: Final = DEFAULTS["graph"]["step"]
MOST_ENDED: Final = 100
"""Rows of millpond_ended that a sweep looks at."""
EVERY_SEQ: Final = 2**53 - 1


def has_parents(job: NewJob) -> bool:
    return bool(job.after) or job.part_of is not None


def open_of(on_dead: OnDead | None) -> int:
    """What is open of a link."""
    return 2 if on_dead == "run" else 1


@dataclass
class Standing:
    """How a job stands to those that it is to wait for. `links`: what is open, by the parent's place. `failed`: a parent because of which
    it is cancelled at once, and how that one ended."""

    links: dict[int, int] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    part_of: int | None = None
    blocked: bool = False
    failed: tuple[str, str] | None = None


def standing_of(
    tx: Transaction, after: Sequence[str], on_dead: OnDead | None, part_of: str | None,
    stands: Mapping[str, str], unknown: Callable[[str], int] | None = None,
) -> Standing | str:  # fmt: skip
    """The id of a parent that makes it an orphan, or else its standing. `stands`: ids that stand for others. `unknown` gives what stands for
    the place of a parent that is not there."""
    own = [stands.get(id, id) for id in ([*after] if part_of is None else [*after, part_of])]
    known = {row["id"]: row for row in tx.rows("graphs/parents", ids=json.dumps(own))}
    standing = Standing()
    for id, its in zip(after, own):
        row = known.get(its)
        if row is None:
            if unknown is None:
                return id
            standing.links[unknown(id)] = open_of(on_dead)
            standing.blocked = True
            continue
        ended = row["state"] in FINAL
        standing.queues.add(row["queue"])
        standing.links[row["seq"]] = -open_of(on_dead) if ended else open_of(on_dead)
        standing.blocked = standing.blocked or not ended
        if ended and row["state"] != "done" and on_dead != "run" and standing.failed is None:
            standing.failed = (its, row["state"])
    if part_of is not None:
        row = known.get(own[-1])
        if row is None or row["state"] in FINAL:
            return part_of
        standing.part_of = row["seq"]
    # Until it is cancelled.
    standing.blocked = standing.blocked or standing.failed is not None
    return standing


def link(tx: Transaction, queue: Queue, standing: Standing, endings: Endings) -> None:
    """The job that was stored last gets its links."""
    for name in {queue.name, *standing.queues}:
        _mark(tx, tx.made_queue(name))
    seq = tx.value("graphs/last")
    if standing.links:
        tx.changes("graphs/link", links=json.dumps([[parent, seq, open] for parent, open in standing.links.items()]))
    if standing.part_of is not None:
        tx.changes("graphs/part_of", seq=seq, part_of=standing.part_of)
    if standing.failed is not None:
        endings.rest += _cancel(tx, *standing.failed, [seq])


def wait_again(tx: Transaction, queue: Queue, seq: int, after: Sequence[str]) -> bool:
    """A claimed job waits until these have ended. Whether any of them has not. `seq`: its place."""
    parents = tx.rows("graphs/parents", ids=json.dumps(list(after))) if after else []
    live = [row for row in parents if row["seq"] != seq and row["state"] not in FINAL]
    if live:
        for name in {queue.name, *(row["queue"] for row in live)}:
            _mark(tx, tx.made_queue(name))
        tx.changes("graphs/link", links=json.dumps([[row["seq"], seq, open_of("run")] for row in live]))
    return bool(live)


def _mark(tx: Transaction, queue: Queue) -> None:
    if not queue.uses_graphs:
        tx.changes("graphs/mark", queue=queue.name)
        queue.uses_graphs = True


def come(tx: Transaction, queue: Queue, id: str) -> None:
    """The job that was stored last may be one that is awaited."""
    if queue.uses_graphs and (node := tx.value("graphs/awaited", id=id)) is not None:
        tx.changes("graphs/come", node=node, seq=tx.value("graphs/last"))
        tx.changes("graphs/unawaited", node=node)


def await_job(tx: Transaction, id: str) -> int:
    """What stands for the place of a job that is not there."""
    tx.changes("graphs/await", id=id)
    tx.reread()
    tx.changes("graphs/await_all")
    node: int = tx.value("graphs/awaited", id=id)
    return node


@dataclass(frozen=True)
class _Ended:
    """A job that has ended: its links to the children with after < seq <= until. `end`: its state; removed: it was live; gone: it was not,
    and its links go with it. `gone`: its row is not there any more. `number`: its row of millpond_ended."""

    parent: int
    id: str
    end: str
    gone: bool
    after: int = 0
    until: int = EVERY_SEQ
    number: int | None = None


class Endings:
    """The jobs that a call ends or removes. They are settled after the last of them."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._linked: dict[str, sqlite3.Row] = {}
        self._removed: list[int] = []
        self.rest: list[_Ended] = []

    def look(self, queue: Queue, ids: Sequence[str]) -> None:
        """Before they end or are removed, as long as they are there."""
        if queue.uses_graphs:
            self._linked |= {row["id"]: row for row in self._tx.rows("graphs/linked", ids=json.dumps(list(ids)))}

    def parent(self, id: str) -> int | None:
        """Its place, if it has children."""
        row = self._linked.get(id)
        return row["seq"] if row and row["has_children"] else None

    def ended(self, id: str, end: str, kept: bool) -> None:
        if (row := self._linked.pop(id, None)) is None:
            return
        if not kept and row["has_parents"]:
            self._removed.append(row["seq"])
        if not row["has_children"]:
            return
        one = _Ended(row["seq"], id, end, not kept)
        # What an earlier end has left is to be settled before.
        if row["pending"] and end != "gone":
            _later(self._tx, one)
        else:
            self.rest.append(one)

    def removed(self, id: str, was_live: bool) -> None:
        self.ended(id, "removed" if was_live else "gone", False)

    def settle(self) -> None:
        removed, rest, self._removed, self.rest = self._removed, self.rest, [], []
        _forget(self._tx, removed)
        for each in _settle(self._tx, rest):
            _later(self._tx, each)


def settle_rest(tx: Transaction) -> bool:
    """A part of what endings have left. Whether there is more."""
    rows = tx.rows("graphs/ended", limit=MOST_ENDED)
    ended = [
        _Ended(row["parent"], row["id"], row["state"], bool(row["gone"]), row["after"], row["until"], row["number"]) for row in rows
    ]
    rest = _settle(tx, ended)
    left = {each.number for each in rest}
    for each in rest:
        if each.number is None:
            _later(tx, each)
        else:
            tx.changes("graphs/go_on", number=each.number, after=each.after)
    for each in ended:
        if each.number not in left:
            tx.changes("graphs/settled", number=each.number)
    return bool(rows) and tx.row("graphs/ended", limit=1) is not None


def expiring(tx: Transaction, queue: Queue, state: State, limit: int, endings: Endings) -> int:
    """Before a sweep removes jobs that were kept long enough. How many stay, as a live child may ask for their results: no list has them
    from now on."""
    if not queue.uses_graphs:
        return 0
    ids = [row["id"] for row in tx.rows("graphs/expiring", queue=queue.name, state=state, limit=limit)]
    endings.look(queue, ids)
    kept = 0
    for id in ids:
        seq = endings.parent(id) if state == "done" else None
        child = None if seq is None else _live_child(tx, seq, 0)
        if child is None:
            endings.removed(id, False)
            continue
        tx.changes("graphs/hold", seq=seq, child=child)
        tx.changes("graphs/unlist", seq=seq)
        kept += 1
    return kept


def look_at_held(tx: Transaction, endings: Endings) -> None:
    """Removes jobs that were kept for children of which none is live any more."""
    for row in tx.rows("graphs/held"):
        child = None if row["id"] is None else _live_child(tx, row["seq"], row["child"])
        if child is not None:
            tx.changes("graphs/look_again", seq=row["seq"], child=child)
            continue
        tx.changes("graphs/unhold", seq=row["seq"])
        if row["id"] is not None:
            endings.look(tx.made_queue(row["queue"]), [row["id"]])
            endings.removed(row["id"], False)
            tx.changes("sweep/remove", id=row["id"])


def _live_child(tx: Transaction, seq: int, start: int) -> int | None:
    child: int | None = tx.value("graphs/live_child", seq=seq, child=start)
    return child


def block_again(tx: Transaction, seqs: Sequence[int]) -> None:
    """Jobs have come back, all of a call: they wait for those of their parents that live."""
    children = json.dumps(list(seqs))
    if seqs and tx.changes("graphs/reopen", children=children):
        for row in tx.rows("graphs/block_again", children=children):
            tx.move(row["queue"], "waiting", "blocked")


def waits_of(tx: Transaction, row: sqlite3.Row) -> dict[str, Any]:
    """Of a blocked job: for how many jobs it waits."""
    if row["state"] != "blocked" or (waits := tx.row("graphs/waits", seq=row["seq"])) is None:
        return {}
    return {"waits_for": waits["links"], "on_dead": "run" if waits["open"] == 2 else None}


def relatives(tx: Transaction, ids: Sequence[str], limit: int) -> Sequence[Relatives | None]:
    return [_relatives(tx, id, limit) for id in ids]


def _relatives(tx: Transaction, id: str, limit: int) -> Relatives | None:
    if (row := tx.row("relatives/job", id=id)) is None:
        return None
    # One more than asked for, to learn whether there are more.
    above = tx.rows("relatives/parents", seq=row["seq"], limit=limit + 1)
    parents, gone = ([each["id"] for each in above[:limit] if each["gone"] == is_gone] for is_gone in (0, 1))
    children = [each["id"] for each in tx.rows("relatives/children", seq=row["seq"], limit=limit + 1)]
    on_dead: OnDead = waits_of(tx, row).get("on_dead") or "cancel"
    more = len(above) > limit or len(children) > limit
    return Relatives(row["queue"], row["state"], on_dead, parents, gone, children[:limit], more)


def standing_of_record(tx: Transaction, record: Record) -> Standing:
    standing = standing_of(tx, record.after, record.on_dead, None, {}, lambda id: await_job(tx, id))
    assert isinstance(standing, Standing)
    return standing


def _later(tx: Transaction, each: _Ended) -> None:
    """The rest is left for sweeps."""
    tx.changes("graphs/later", parent=each.parent, id=each.id, state=each.end, after=each.after, until=each.until)


def _settle(tx: Transaction, ended: Sequence[_Ended]) -> list[_Ended]:
    """What of them, and of children that were cancelled, is left."""
    rest, left = list(ended), STEP
    while rest and left > 0:
        rows = tx.rows("graphs/children", ended=_ranges(rest), limit=left)
        looked, limit = rest, left
        rest, left = [], left - len(rows)
        if len(rows) == limit:
            at, last = rows[-1]["at"], rows[-1]["child"]
            rest = [replace(looked[at], after=last), *looked[at + 1 :]]
            looked = [*looked[:at], replace(looked[at], until=last)]
        rest += _close(tx, looked, rows)
    return rest


def _ranges(ended: Sequence[_Ended]) -> str:
    return json.dumps([[each.parent, each.after, each.until, each.id] for each in ended])


def _close(tx: Transaction, looked: Sequence[_Ended], rows: Sequence[sqlite3.Row]) -> list[_Ended]:
    """Children that have ended, too."""
    if not rows:
        return []
    if closing := [each for each in looked if each.end != "gone"]:
        tx.changes("graphs/close", ended=_ranges(closing))
    if dropping := [each for each in looked if each.gone]:
        tx.changes("graphs/gone", ended=_ranges(dropping))
        tx.changes("graphs/drop", ended=_ranges(dropping))
    failed: dict[int, list[int]] = {}
    free: list[int] = []
    for row in rows:
        end = looked[row["at"]].end
        if row["open"] <= 0 or end == "gone":
            continue
        if end == "done" or row["open"] == 2:
            free.append(row["child"])
        else:
            failed.setdefault(row["at"], []).append(row["child"])
    cancelled = [each for at, children in failed.items() for each in _cancel(tx, looked[at].id, looked[at].end, children)]
    _release(tx, free)
    return cancelled


def _cancel(tx: Transaction, parent: str, end: str, children: Sequence[int]) -> list[_Ended]:
    """Those that were blocked until now."""
    error = JobError("ParentFailed", "MillpondError", f"The job {parent}, which it waited for, is {end}.")
    rows = tx.rows("graphs/cancel", children=json.dumps(list(children)), error=error.to_json())
    kept = {row["seq"]: tx.finish(tx.made_queue(row["queue"]), "blocked", "cancelled") for row in rows}
    for row in rows:
        let_follow(tx, tx.made_queue(row["queue"]), row["key"])
    if gone := [seq for seq, is_kept in kept.items() if not is_kept]:
        tx.changes("graphs/remove", children=json.dumps(gone))
        _forget(tx, gone)
    return [_Ended(row["seq"], row["id"], "cancelled", not kept[row["seq"]]) for row in rows]


def _release(tx: Transaction, children: Sequence[int]) -> None:
    """Those that wait for nobody any more are waiting, or scheduled."""
    rows = tx.rows("graphs/release", children=json.dumps(list(children))) if children else []
    for row in rows:
        tx.made_queue(row["queue"])
        tx.move(row["queue"], "blocked", row["state"], due_in=row["due_at"] - tx.now)
    for name in {row["queue"] for row in rows if row["state"] == "waiting"}:
        tx.line_up(name)


def _forget(tx: Transaction, children: Sequence[int]) -> None:
    """Jobs are removed, and their links to their parents with them."""
    rows = tx.rows("graphs/forget", children=json.dumps(list(children))) if children else []
    for node in {row["parent"] for row in rows if row["parent"] < 0}:
        tx.changes("graphs/unawaited", node=node)
    if children:
        tx.changes("graphs/forget_gone", children=json.dumps(list(children)))
        shrink(tx)


def shrink(tx: Transaction) -> None:
    """What is left for sweeps has lost links."""
    if tx.row("graphs/ended", limit=1):
        tx.changes("graphs/shrink")
        tx.changes("graphs/over")
