"""What the vectors cannot say, on every store: several clients at once, large batches, any text, errors."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from millpond.encoding import decode, encode
from millpond.jobs import Completion, Extension, Failure, Held, JobError, Release
from millpond.rate import Rate
from millpond.store import Store
from millpond.stores import open_store
from tests.stores import WAIT, Place, drain, job, refuses


def test_several_clients_open_push_and_claim_at_once(place: Place) -> None:
    def client(number: int) -> tuple[list[str], list[str]]:
        store = place.open()
        pushed = [each.id for _ in range(10) for each in store.push([job(fresh=True) for _ in range(5)])]
        ran = drain(store, "q", f"w{number}")
        store.close()
        return pushed, ran

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(client, range(4)))
    store = place.open()
    ran = [id for _, ids in answers for id in ids] + drain(store, "q", "last")
    assert sorted(ran) == sorted(id for ids, _ in answers for id in ids)
    assert store.stats("q")[0].counts["done"] == 200
    store.close()


def test_one_store_is_used_by_several_threads(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = [each.id for pushed in pool.map(lambda _: store.push([job(), job()]), range(20)) for each in pushed]
        ran = [id for ids in pool.map(lambda number: drain(store, "q", f"w{number}"), range(4)) for id in ids]
    assert sorted(ran) == sorted(ids)


def test_what_one_client_configures_holds_for_another(place: Place) -> None:
    one, other = place.open(), place.open()
    one.configure("q", lease=1_234, attempts=3)
    other.configure("q", paused=True)
    one.push([job()])
    assert other.claim("q", "w", 1).jobs == []
    one.configure("q", paused=False)
    claimed = other.claim("q", "w", 1)
    assert (claimed.lease, claimed.jobs[0].attempts) == (1_234, 3)
    one.close()
    other.close()


def test_a_thousand_jobs_in_one_call(store: Store) -> None:
    jobs = [job(priority=number % 10, key=f"k{number}") for number in range(1_200)]
    assert {each.status for each in store.push(jobs)} == {"pushed"}
    assert [each.id for each in store.push(jobs)] == [each.id for each in jobs]
    claimed = store.claim("q", "w", 1_200).jobs
    assert [each.priority for each in claimed] == sorted((each.priority for each in jobs), reverse=True)
    items = [Extension(each.id, each.fence) for each in claimed]
    assert set(store.extend("q", items)) == {"ok"}
    half = [Completion(each.id, each.fence, encode({"n": 1})) for each in claimed[:600]]
    assert set(store.complete("q", half)) == {"ok"}
    assert set(store.release("q", [Release(each.id, each.fence) for each in claimed[600:]])) == {"ok"}
    assert set(store.cancel([each.id for each in claimed])) == {"done", "cancelled"}
    found = store.find([each.id for each in claimed])
    assert [each.state if each else None for each in found] == ["done"] * 600 + ["cancelled"] * 600


def test_nothing_is_answered_with_nothing(store: Store) -> None:
    answers: list[Sequence[object]] = [store.push([]), store.find([]), store.outcomes([]), store.cancel([]), store.extend("q", [])]
    answers += [store.complete("q", []), store.fail("q", []), store.release("q", [])]
    assert not any(answers) and store.requeue(ids=[]).requeued == 0
    store.record([])
    store.configure("q")
    assert list(store.stats()) == []


def test_errors_and_payloads_with_any_text(store: Store) -> None:
    text = "NUL \0, a quote ', a backslash \\, 🌊"
    store.push([job(data=encode({"text": text}), attempts=1, key="'\"`\\;--")])
    claimed = store.claim("q", "w", 1).jobs[0]
    assert decode(claimed.data.encoding, claimed.data.body) == {"text": text}
    error = JobError("HandlerFailed", "ValueError", text, "stack\n  line")
    assert store.fail("q", [Failure(claimed.id, claimed.fence, error=error, delay=None)]) == ["dead"]
    record = store.find([claimed.id])[0]
    assert record and record.error == error


def test_backoff_with_jitter_stays_in_its_bounds(store: Store) -> None:
    store.push([job() for _ in range(20)])
    jobs = store.claim("q", "w", 20).jobs
    error = JobError("HandlerFailed", "Error", "no")
    assert set(store.fail("q", [Failure(each.id, each.fence, error=error, delay="backoff") for each in jobs])) == {"retry"}
    records = [record for record in store.find([each.id for each in jobs]) if record]
    waits = [record.due_at - (record.started_at or 0) for record in records]
    assert len(set(waits)) > 1 and all(500 <= wait < 1_000 + WAIT * 1_000 for wait in waits)


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    refuses("Closed", lambda: store.stats())
    refuses("Closed", lambda: store.push([job()]))


def test_bad_input_is_refused_before_the_store(store: Store) -> None:
    refuses("InvalidName", lambda: store.configure("", paused=True))
    refuses("InvalidOption", lambda: store.configure("q", capacity=0))
    refuses("InvalidOption", lambda: store.configure("q", lease=49))
    untyped: Any = store
    refuses("InvalidOption", lambda: store.configure("q", running=0))
    refuses("InvalidOption", lambda: untyped.configure("q", grouped=False))
    refuses("InvalidOption", lambda: untyped.configure("q", lease=None))
    refuses("InvalidOption", lambda: job(cost=0))
    refuses("InvalidOption", lambda: Rate(0, 1_000))
    refuses("InvalidOption", lambda: untyped.configure("q", walking=5))
    refuses("InvalidOption", lambda: job(priority=10))
    refuses("InvalidOption", lambda: job(delay=-1))
    refuses("InvalidOption", lambda: job(trace="é"))
    refuses("InvalidName", lambda: job(key=""))
    refuses("InvalidName", lambda: Held("job-1", 1))


def test_open_store_by_url(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path}/a.db").close()
    refuses("UnknownScheme", lambda: open_store("mysql://host"))


@pytest.mark.parametrize("url", ["postgres://nobody@127.0.0.1:1/x", "sqlite:/nowhere/at/all.db"])
def test_a_store_that_cannot_be_reached(url: str) -> None:
    refuses("StoreUnavailable", lambda: open_store(url))
