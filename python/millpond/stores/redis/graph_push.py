"""Pushes jobs that wait for others, or that are stored together or not at all: contract/redis/README.md, "push of a graph". What it learns
on the way, such as a parent that went meanwhile, it cannot mend in what it has stored: it removes that, and begins again."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from millpond.errors import MillpondError
from millpond.jobs import NewJob, Pushed
from millpond.stores.redis.links import ID, Links, link_of
from millpond.stores.redis.push import Pusher, Staging
from millpond.stores.redis.registry import Registry
from millpond.stores.redis.relatives import Kin, kin_of
from millpond.stores.redis.routing import Part, partition_of
from millpond.stores.redis.wire import to_bytes, to_id

MOST_TRIES: Final = 100
REFUSED: Final = ("full", "orphan", "failed")


@dataclass
class Facts:
    """What was found out: jobs that stand for others of the call, jobs that were not stored, and jobs of `within` that have ended."""

    stand_ins: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)


def push_graph(registry: Registry, links: Links, jobs: Sequence[NewJob], whole: bool) -> tuple[list[Pushed], list[Pusher]]:
    """The outcomes, and what has pushed, for bells and lost settings."""
    facts, pushers = Facts(), list[Pusher]()
    for _ in range(MOST_TRIES):
        outcomes = _GraphPush(registry, links, jobs, whole, facts, pushers).run()
        if outcomes is not None:
            return outcomes, pushers
    raise MillpondError("StoreBusy", "push: the parents of the jobs kept changing; nothing was stored")


class _GraphPush:
    def __init__(
        self, registry: Registry, links: Links, jobs: Sequence[NewJob], whole: bool, facts: Facts, pushers: list[Pusher]
    ) -> None:
        self._registry, self._links, self._jobs, self._whole = registry, links, jobs, whole
        self._facts, self._pushers, self._id = facts, pushers, secrets.token_bytes(ID)
        # Of two with the same id, the first one is stored.
        self._places = {job.id: at for at, job in reversed(list(enumerate(jobs)))}
        self._withins = {job.part_of for job in jobs}
        self._homes: list[Part] = []
        self._located: dict[str, Part] = {}
        self._children: dict[str, list[bytes]] = {}
        self._used: set[Part] = set()
        self._may_be_committed = False

    def run(self) -> list[Pushed] | None:
        """None: nothing was stored, and it is to begin again with the facts."""
        try:
            outcomes = self._try()
        except MillpondError:
            if not self._may_be_committed:
                self._finish(False)
            raise
        if outcomes is None:
            self._finish(False)
        return outcomes

    def _try(self) -> list[Pushed] | None:
        self._plan()
        counts = {job.queue: self._registry.known[job.queue] for job in self._jobs}
        staging = Staging(self._id, self._homes[0].name if self._homes else "", self._whole, counts, self._staged, self._links)
        pusher = Pusher(self._registry, self._jobs, staging=staging)
        self._pushers.append(pusher)
        try:
            outcomes = [self._as_given(each, at) for at, each in enumerate(pusher.outcomes())]
        finally:
            self._used |= staging.parts
        if staging.is_held:
            return None
        for each in outcomes:
            # A part that failed may hold jobs that nobody could link.
            if each.error and each.error.code != "NotSupported":
                raise each.error
        if not self._agrees(outcomes):
            return None
        if self._whole and any(each.status in REFUSED for each in outcomes):
            self._finish(False)
            self._used = set()
            return self._withheld(outcomes)
        if not self._link(outcomes):
            return None
        home = self._homes[0].name
        if not self._decide(home):
            raise MillpondError("StoreUnavailable", "push: the jobs were stored too slowly, and removed by a sweep; nothing was stored")
        # What cannot be started now, a sweep starts.
        if self._finish(True):
            self._links.forget(self._id, home)
        if replacing := [job for job, each in zip(self._jobs, outcomes, strict=True) if each.status == "replaced"]:
            # What a push replaces is replaced once the others are stored.
            self._pushers.append(Pusher(self._registry, replacing, links=self._links))
            replaced = self._pushers[-1].outcomes()
            if self._whole and (failed := [each.error for each in replaced if each.error]):
                raise failed[0]
            told = iter(replaced)
            return [next(told) if each.status == "replaced" else each for each in outcomes]
        return outcomes

    def _decide(self, home: str) -> bool:
        """Where the answer is lost, whoever meets the jobs, or a sweep, goes by what was decided."""
        self._may_be_committed = True
        try:
            self._may_be_committed = self._links.decide(self._id, home, "committed")
        except MillpondError as error:
            self._may_be_committed = error.code not in ("StoreFull", "StoreBusy")
            raise
        return self._may_be_committed

    def _plan(self) -> None:
        """Makes the queues known, finds the parents, and gathers the children."""
        for queue in dict.fromkeys(job.queue for job in self._jobs):
            if queue not in self._registry.known:
                self._registry.register(queue)
        for job in self._jobs:
            parts = self._registry.parts(job.queue)
            self._homes.append(parts[partition_of(job.id, job.key, job.group, len(parts))])
        others = []
        for at, job in enumerate(self._jobs):
            if self._places[job.id] == at:
                name = self._homes[at].name.encode()
                for id in self._parents_of(job, at):
                    if self._is_before(id, at):
                        self._children.setdefault(id, []).append(to_bytes(job.id) + bytes([len(name)]) + name)
                others += [self._stand_in(id, at) for id in (*job.after, job.part_of) if id and not self._is_before(id, at)]
        self._located = {id: part for part, ids in self._registry.locate(others).items() for id in ids}

    def _stand_in(self, id: str, at: int) -> str:
        """What stands for a job that is earlier in the call than that place; else the job itself."""
        return self._facts.stand_ins.get(id, id) if self._places.get(id, at) < at else id

    def _is_refused(self, id: str, at: int) -> bool:
        """It was to come before that place, and was not stored."""
        return id in self._facts.refused and self._places.get(id, at) < at

    def _parents_of(self, job: NewJob, at: int) -> list[str]:
        return list(dict.fromkeys(self._stand_in(id, at) for id in job.after))

    def _is_before(self, id: str, at: int) -> bool:
        """It is in the call, before that place, and is to be stored with it."""
        real, facts = self._stand_in(id, at), self._facts
        return self._places.get(real, at) < at and real not in facts.stand_ins and real not in facts.refused

    def _elsewhere(self, job: NewJob, at: int) -> list[tuple[str, Part | None]]:
        """Parents that are in the store already, and where; None: nowhere."""
        others = [id for id in self._parents_of(job, at) if not self._is_before(id, at)]
        return [(id, None if self._is_refused(id, at) else self._located.get(id)) for id in others]

    def _staged(self, job: NewJob) -> tuple[bytes, bytes, int, bytes]:
        """As stage.lua takes a job: its values in `parents` and `children`, how many parents are near, the job of `within` if it has ended."""
        at = self._places[job.id]
        elsewhere = self._elsewhere(job, at)
        # The script finds that it does not know those that nobody knows.
        near = [id for id, home in elsewhere if home in (None, self._homes[at])]
        far = [id for id, home in elsewhere if home not in (None, self._homes[at])]
        ids = [*near, *far, *(id for id in self._parents_of(job, at) if self._is_before(id, at))]
        kind = b"r" if job.on_dead == "run" else b"c"
        parents = kind + self._id + len(ids).to_bytes(3, "big") + b"".join(map(to_bytes, ids))
        children = self._children.get(job.id)
        ended = b""
        if job.part_of and not self._is_before(job.part_of, at):
            within = self._stand_in(job.part_of, at)
            if within in self._facts.ended or self._is_refused(within, at) or within not in self._located:
                ended = to_bytes(within)
        return parents, bytes(3) + b"".join(children) if children else b"", len(near), ended

    def _as_given(self, outcome: Pushed, at: int) -> Pushed:
        """The parent of an orphan as the call named it."""
        job = self._jobs[at]
        given = [id for id in (*job.after, job.part_of) if id and self._stand_in(id, at) == outcome.parent]
        return replace(outcome, parent=given[0]) if given else outcome

    def _agrees(self, outcomes: Sequence[Pushed]) -> bool:
        """
        Whether all parents in the call were stored with their children. If not, the facts tell which were not. What waits for a job that is
        not stored is not stored either, and leaves its key and its place to those behind it: what they are is seen in the next try.
        """
        facts, agrees, is_open = self._facts, True, False
        for id, at in sorted(self._places.items(), key=lambda each: each[1]):
            outcome = outcomes[at]
            is_pushed, is_refused = outcome.status == "pushed", outcome.status in REFUSED
            is_orphan = outcome.status == "orphan" or is_pushed and self._is_orphan(at)
            is_open = is_open or is_pushed and is_orphan
            is_parent = id in self._children or id in self._withins
            if not is_parent or id in facts.stand_ins or id in facts.refused or is_pushed and not is_orphan:
                continue
            agrees = False
            if is_orphan or is_refused and not is_open:
                facts.refused.add(id)
            elif not is_refused and not (is_open and outcome.id in self._places):
                facts.stand_ins[id] = outcome.id
        return agrees

    def _is_orphan(self, at: int) -> bool:
        """It waits for a job of the call that is not stored."""
        job = self._jobs[at]
        parents = (*job.after, job.part_of) if job.part_of else job.after
        return any(self._is_refused(self._stand_in(id, at), at) for id in parents)

    def _link(self, outcomes: Sequence[Pushed]) -> bool:
        """Links to parents in other partitions. False: one of them has gone or ended meanwhile."""
        links: list[tuple[Part, bytes]] = []
        withins: dict[str, list[NewJob]] = {}
        for at, job in enumerate(self._jobs):
            if outcomes[at].status != "pushed" or self._places[job.id] != at:
                continue
            own = self._homes[at]
            links += [(home, link_of(id, job.id, own)) for id, home in self._elsewhere(job, at) if home not in (None, own) for home in [home] if home]
            if job.part_of:
                withins.setdefault(job.part_of, []).append(job)
        # They are located anew, and found to be gone.
        if self._links.link(links, self._id):
            return False
        return all(self._adopt(id, jobs, outcomes) for id, jobs in withins.items())

    def _adopt(self, given: str, jobs: Sequence[NewJob], outcomes: Sequence[Pushed]) -> bool:
        """Lets the children of a job wait for these as well. False: it has ended."""
        first = self._places[jobs[0].id]
        within = self._stand_in(given, first)
        home = self._homes[self._places[within]] if self._is_before(given, first) else self._located[within]

        def look(start: bytes) -> Kin | None:
            kin = kin_of(self._registry, home, [within], start)[0]
            if kin is None or kin.state in ("done", "dead", "cancelled"):
                self._facts.ended.add(within)
                return None
            return kin

        def place_of(child: str) -> int:
            # A later job of the call was not there when a job was pushed, unless the call only named it again.
            at = self._places.get(child, -1)
            return at if at >= 0 and outcomes[at].status == "pushed" else -1

        start = b""
        while kin := look(start):
            pairs = [
                (job.id, link)
                for link in kin.links for job in jobs
                if place_of(to_id(link[:ID])) < self._places[job.id]
            ]  # fmt: skip
            waiting = self._links.adopt(within, pairs, True)
            opened = [pair for pair, waits in zip(pairs, waiting, strict=True) if waits]
            self._links.link(((self._homes[self._places[id]], to_bytes(id) + link) for id, link in opened), self._id)
            adopted = self._links.adopt(within, opened, False)
            # Its own end may have been told to the child already.
            if not all((*waiting, *adopted)) and not look(b""):
                return False
            start = kin.start
            if not start:
                return True
        return False

    def _withheld(self, outcomes: Sequence[Pushed]) -> list[Pushed]:
        """What is answered where nothing is stored."""
        would_be = {each.id for each in outcomes if each.status == "pushed"}
        return [
            Pushed("withheld", job.id)
            if each.status == "replaced" or each.id in would_be and each.status not in REFUSED else each
            for job, each in zip(self._jobs, outcomes, strict=True)
        ]  # fmt: skip

    def _finish(self, is_committed: bool) -> bool:
        """Starts or removes the jobs. What fails, a sweep does."""
        done = True
        for part in self._used:
            done = False if not self._finish_in(part, is_committed) else done
        return done

    def _finish_in(self, part: Part, is_committed: bool) -> bool:
        with suppress(MillpondError):
            self._links.finish_in(part, self._id, is_committed)
            return True
        return False
