"""Pushes of whole graphs, and what is read of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from millpond.encoding import Body, encode
from millpond.errors import MillpondError
from millpond.graphs import FEW_RELATIVES, MOST_BYTES, followed_by, graph_of, parents_of, push_all
from millpond.ids import new_id
from millpond.jobs import Completion, Failure, JobError, NewJob
from millpond.store import Store
from tests.stores import Place, drain, job, refuses
from tests.test_transactions import caller


def blocked(store: Store, queue: str = "q") -> int:
    """How many jobs of the queue wait for others; none, of a queue that is not there."""
    return sum(each.counts["blocked"] for each in store.stats(queue))


def total(store: Store, *queues: str) -> int:
    return sum(sum(each.counts.values()) for queue in queues for each in store.stats(queue))


def test_a_graph_over_several_queues_in_any_order(store: Store) -> None:
    first, second = job("orders"), job("payments")
    last = job("invoices", after=[second.id.upper(), first.id])
    pushed = push_all(store, [last, first, second])
    assert [(each.status, each.id) for each in pushed] == [("pushed", each.id) for each in (last, first, second)]
    assert blocked(store, "invoices") == 1
    assert drain(store, "invoices", "w") == []
    assert drain(store, "orders", "w") + drain(store, "payments", "w") == [first.id, second.id]
    assert drain(store, "invoices", "w") == [last.id]
    assert push_all(store, []) == []


def test_random_graphs_start_behind_their_parents(store: Store) -> None:
    chance = random.Random(7)
    jobs: list[NewJob] = []
    for _ in range(40):
        after = [each.id for each in chance.sample(jobs, min(len(jobs), chance.randint(0, 3)))]
        jobs.append(job(f"q{chance.randint(1, 3)}", after=after))
    given = chance.sample(jobs, len(jobs))
    assert [each.id for each in push_all(store, given)] == [each.id for each in given]
    ended: list[str] = []
    while len(ended) < len(jobs):
        came = [id for queue in ("q1", "q2", "q3") for id in drain(store, queue, "w", 1)]
        assert came
        ended += came
    places = {id: at for at, id in enumerate(ended)}
    assert all(places[id] < places[each.id] for each in jobs for id in each.after)


def test_a_circle_is_refused_by_its_places(store: Store) -> None:
    a, b, c, d = (new_id() for _ in range(4))
    jobs = [job(id=a), job(id=b, after=[a, d]), job(id=c, after=[b]), job(id=d, after=[c])]
    with pytest.raises(MillpondError, match="1 after 3 after 2 after 1") as caught:
        push_all(store, jobs)
    assert caught.value.code == "GraphCycle"
    refuses("GraphCycle", lambda: push_all(store, [job(id=a, after=[a])]))
    many = [new_id() for _ in range(30)]
    with pytest.raises(MillpondError, match=", and 11 more"):
        push_all(store, [job(id=id, after=[many[at - 1]]) for at, id in enumerate(many)])
    assert total(store, "q") == 0


def test_all_are_stored_or_none(store: Store) -> None:
    with pytest.raises(MillpondError, match="push to b") as caught:
        push_all(store, [job("a"), job("b", after=[new_id()])])
    assert caught.value.code == "ParentUnknown"
    refuses("ParentUnknown", lambda: push_all(store, [job("a"), job("b", part_of=new_id())]))
    store.push([job("h", key="k")])
    refuses("KeyHeld", lambda: push_all(store, followed_by([job("a")], job("h", key="k"))))
    store.configure("b", capacity=1)
    first = job("a")
    refuses("QueueFull", lambda: push_all(store, [first, job("b", after=[first.id]), job("b")]))
    assert total(store, "a", "b") == 0


def test_a_repeated_graph_and_one_that_meets_a_key(store: Store) -> None:
    first = job(key="k")
    jobs = [first, job("r", after=[first.id])]
    push_all(store, jobs)
    assert [each.status for each in push_all(store, jobs)] == ["existing", "existing"]
    # The job that has the key is the parent.
    other = job(key="k")
    [met, child] = push_all(store, [other, job("r", after=[other.id])])
    assert (met.status, met.id, child.status) == ("existing", first.id, "pushed")
    assert [each.id for each in parents_of(store, child.id)] == [first.id]


def test_too_many_or_too_large(store: Store) -> None:
    each = job(data=Body("bytes", bytes(MOST_BYTES // 4)))
    refuses("PayloadTooLarge", lambda: push_all(store, [replace(each, id=new_id()) for _ in range(5)]))
    refuses("PayloadTooLarge", lambda: push_all(store, [job() for _ in range(5_001)]))
    refuses("InvalidOption", lambda: job(after=[new_id()] * 10_001))
    refuses("InvalidOption", lambda: job(after=new_id()))
    refuses("InvalidName", lambda: job(after=["no id"]))
    refuses("InvalidOption", lambda: job(on_dead="start"))


def test_one_job_when_all_have_ended(store: Store) -> None:
    jobs = [job(data=encode({"n": n}), attempts=1) for n in range(3)]
    *_, callback = push_all(store, followed_by(jobs, job("r", on_dead="run")))
    assert callback.status == "pushed"
    claimed = store.claim("q", "w", 3).jobs
    ended = [Completion(each.id, each.fence, result=encode(n)) for n, each in enumerate(claimed[:2])]
    assert list(store.complete("q", ended)) == ["ok", "ok"]
    assert drain(store, "r", "w") == []
    error = JobError("HandlerFailed", "Error", "no")
    store.fail("q", [Failure(claimed[2].id, claimed[2].fence, error=error, delay=None)])
    assert drain(store, "r", "w") == [callback.id]
    parents = list(parents_of(store, callback.id))
    assert [each.id for each in parents] == sorted(each.id for each in jobs)
    assert {each.id: each.result and each.result.body for each in parents} == {
        claimed[0].id: "0", claimed[1].id: "1", claimed[2].id: None,
    }  # fmt: skip
    assert [each.error and each.error.message for each in parents if each.state == "dead"] == ["no"]
    assert list(parents_of(store, new_id())) == []


def test_a_parent_that_is_gone_is_told(store: Store) -> None:
    first = job()
    [_, child] = push_all(store, followed_by([first], job("r")))
    drain(store, "q", "w")
    store.remove(ids=[first.id])
    assert [(each.id, each.queue, each.state) for each in parents_of(store, child.id)] == [(first.id, None, "gone")]


def test_a_dead_parent_cancels_unless_told_otherwise(store: Store) -> None:
    first = job(attempts=1)
    push_all(store, [first, job("r", after=[first.id]), job("r", after=[first.id], on_dead="run")])
    [claimed] = store.claim("q", "w", 1).jobs
    store.fail("q", [Failure(claimed.id, claimed.fence, error=JobError("HandlerFailed", "Error", "no"), delay=None)])
    [stats] = store.stats("r")
    assert (stats.counts["cancelled"], stats.counts["waiting"], stats.counts["blocked"]) == (1, 1, 0)


def test_a_part_of_a_jobs_work_comes_before_what_waits_for_it(store: Store) -> None:
    whole = job()
    # Given first, it is stored behind the job that it is part of.
    part = job("parts", part_of=whole.id)
    push_all(store, [part, whole])
    after = job("r", after=[whole.id])
    push_all(store, [after])
    [claimed] = store.claim("q", "w", 1).jobs
    other = job("parts", part_of=claimed.id)
    store.push([other])
    assert list(store.complete("q", [Completion(claimed.id, claimed.fence)])) == ["ok"]
    assert drain(store, "r", "w") == []
    assert set(drain(store, "parts", "w")) == {part.id, other.id}
    assert drain(store, "r", "w") == [after.id]


def test_a_graph_is_seen(store: Store) -> None:
    first, other = job(), job("r")
    last = job("r", after=[first.id, other.id])
    push_all(store, [first, last, other])
    drain(store, "q", "w")
    graph = graph_of(store, first.id.upper())
    assert graph
    assert [(each.id, each.state) for each in graph.nodes] == [(first.id, "done"), (last.id, "blocked"), (other.id, "waiting")]
    assert (graph.nodes[0].children, graph.nodes[1].parents) == ([last.id], sorted([first.id, other.id]))
    assert (graph.counts["done"], graph.counts["blocked"], graph.left, graph.more) == (1, 1, 2, False)
    cut = graph_of(store, first.id, limit=2)
    assert cut
    assert ([each.id for each in cut.nodes], cut.more) == ([first.id, last.id], True)
    assert graph_of(store, new_id()) is None
    refuses("InvalidOption", lambda: graph_of(store, first.id, limit=0))
    many = followed_by([job() for _ in range(FEW_RELATIVES + 5)], job("r"))
    push_all(store, many)
    wide = graph_of(store, many[0].id)
    assert wide
    assert (len(wide.nodes), wide.more) == (FEW_RELATIVES + 6, False)


def test_in_a_callers_transaction_all_or_none(place: Place, store: Any) -> None:
    first = job()
    jobs = [job("r", after=[first.id]), first]
    if place.name == "redis":
        refuses("NotSupported", lambda: push_all(store, jobs, tx=object()))
        return
    connection = caller(place, store)
    store.configure("full", capacity=1)
    connection.execute("begin")
    refuses("ParentUnknown", lambda: push_all(store, [job("a"), job("b", after=[new_id()])], tx=connection))
    refuses("QueueFull", lambda: push_all(store, [job("a"), job("full"), job("full")], tx=connection))
    push_all(store, jobs, tx=connection)
    assert total(store, "q", "r") == 0
    connection.commit()
    connection.close()
    assert total(store, "a", "b", "full") == 0
    assert blocked(store, "r") == 1
    assert drain(store, "q", "w") == [first.id]
    assert drain(store, "r", "w") == [jobs[0].id]
