"""Replays the vectors of single values."""

from __future__ import annotations

import base64
import math
import threading
from typing import Any

import pytest

from millpond.backoff import backoff_of
from millpond.encoding import decode, encode
from millpond.errors import CODES, MillpondError
from millpond.histogram import bounds_of, bucket_of, merge, middle_of, percentile
from millpond.ids import check_id, new_id
from millpond.names import check_key, check_queue
from millpond.rate import Rate, rate_of
from millpond.sizing import Demand, sizing
from millpond.steps import NewEntry, Park, Signal
from tests.vectors import Case, LeftOut, label, load, value_of

_encoding, _backoff, _histogram = load("encoding"), load("backoff"), load("histogram")
_ids, _names, _rate, _sizing = load("ids"), load("keys"), load("rate"), load("sizing")
_seal = load("seal")


def _refuses(code: str, call: Any, *args: Any) -> str:
    assert code in CODES
    with pytest.raises(MillpondError) as caught:
        call(*args)
    assert caught.value.code == code
    return str(caught.value)


def _value(notation: Any) -> Any:
    try:
        return value_of(notation)
    except LeftOut as reason:
        pytest.skip(str(reason))


def _body(case: Case) -> str | bytes:
    return base64.b64decode(case["base64"]) if "base64" in case else str(case["body"])


def _buckets(given: dict[str, int]) -> dict[int, int]:
    return {int(bucket): count for bucket, count in given.items()}


@pytest.mark.parametrize("case", _encoding["encode"], ids=label)
def test_encode(case: Case) -> None:
    encoded = encode(_value(case["value"]))
    assert (encoded.encoding, encoded.body) == (case["encoding"], _body(case))


@pytest.mark.parametrize("case", _encoding["refuse"], ids=label)
def test_refuse(case: Case) -> None:
    message = _refuses(case["error"], encode, _value(case["value"]))
    if case.get("path"):
        assert f"the text at {case['path']} holds" in message


@pytest.mark.parametrize("case", _encoding["sizes"], ids=label)
def test_sizes(case: Case) -> None:
    value = _value(case["value"])
    if "error" in case:
        _refuses(case["error"], encode, value, case["limit"])
    else:
        encode(value, case["limit"])


@pytest.mark.parametrize("case", _encoding["decode"], ids=label)
def test_decode(case: Case) -> None:
    notation = case["value"]
    # Read, an integer of 64 bits is an integer like any other.
    expected = [5, -1] if notation == [{"$bigint": "5"}, {"$bigint": "-1"}] else _value(notation)
    value = decode(case["encoding"], _body(case))
    if isinstance(expected, float) and math.isnan(expected):
        assert isinstance(value, float) and math.isnan(value)
    else:
        assert value == expected


@pytest.mark.parametrize("case", _encoding["bad"], ids=label)
def test_bad(case: Case) -> None:
    _refuses("PayloadNotDecodable", decode, case["encoding"], _body(case))


def test_bytes_that_look_sealed_come_back_as_they_are() -> None:
    looks, packed = (base64.b64decode(_seal["looks"][name]) for name in ("base64", "msgpack"))
    encoded = encode(looks)
    assert (encoded.encoding, encoded.body) == ("msgpack", packed)
    assert decode("msgpack", packed) == looks


@pytest.mark.parametrize("case", _seal["sealed"], ids=label)
def test_sealed(case: Case) -> None:
    _refuses("PayloadSealed", decode, "bytes", base64.b64decode(case["sealed"]))


@pytest.mark.parametrize("value", [2**32, -(2**31) - 1, 2**53 - 1, 2**53, 0, -1])
def test_integers_beside_bytes_come_back_as_integers(value: int) -> None:
    encoded = encode([value, b""])
    back = decode(encoded.encoding, encoded.body)
    assert back == [value, b""] and isinstance(back, list) and isinstance(back[0], int)


@pytest.mark.parametrize("case", _backoff["cases"], ids=label)
def test_backoff(case: Case) -> None:
    assert backoff_of(case["options"]).delay(case["attempt"], case["random"]) == case["ms"]


@pytest.mark.parametrize("case", _backoff["refused"], ids=label)
def test_backoff_refused(case: Case) -> None:
    _refuses(case["error"], backoff_of, case["options"])


def test_histogram_buckets() -> None:
    for case in _histogram["buckets"]:
        assert bucket_of(case["ms"]) == case["bucket"], case


def test_histogram_bounds() -> None:
    for case in _histogram["bounds"]:
        expected = pytest.approx((case["from"], case["to"], case["middle"]), rel=1e-12)
        assert (*bounds_of(case["bucket"]), middle_of(case["bucket"])) == expected


def test_histogram_percentiles() -> None:
    for case in _histogram["percentiles"]:
        assert percentile(_buckets(case["buckets"]), case["share"]) == case["bucket"], case


def test_histogram_merges() -> None:
    for case in _histogram["merges"]:
        assert merge(_buckets(case["into"]), _buckets(case["from"])) == _buckets(case["merged"]), case


@pytest.mark.parametrize("case", _ids["good"], ids=label)
def test_id(case: Case) -> None:
    assert check_id(case["id"]) == case["kept"]


@pytest.mark.parametrize("case", _ids["bad"], ids=label)
def test_bad_id(case: Case) -> None:
    _refuses("InvalidName", check_id, case["id"])


def _parts(text: str) -> tuple[int, int, int]:
    bits = int(text.replace("-", ""), 16)
    return bits >> 76 & 0xF, bits >> 62 & 0b11, bits >> 80


def test_made_ids() -> None:
    for case in _ids["made"]:
        assert _parts(case["id"]) == (case["version"], case["variant"], case["ms"])
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(set(made))
    assert all(_parts(check_id(each))[:2] == (7, 2) for each in made)


def test_ids_of_several_threads_differ() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(2_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8_000


@pytest.mark.parametrize("kind", ["queues", "keys"])
def test_names(kind: str) -> None:
    check: Any = check_queue if kind == "queues" else check_key
    for case in _names[kind]["good"]:
        assert check(value_of(case["name"])) == value_of(case["name"]), case
    for case in _names[kind]["bad"]:
        _refuses("InvalidName", check, value_of(case["name"]))


@pytest.mark.parametrize("case", _rate["cases"], ids=label)
def test_rate(case: Case) -> None:
    rate, full = Rate(**case["rate"]), case["full"]
    for step in case["steps"]:
        if "released" in step:
            full = rate.released(full, step["now"], step["cost"], step["released"])
        else:
            assert rate.allowed_from(full, step["cost"]) == step["from"], step
            full = rate.started(full, step["now"], step["cost"])
        assert full == step["full"], step


@pytest.mark.parametrize("case", _rate["bounds"], ids=label)
def test_rate_bound(case: Case) -> None:
    assert Rate(**case["rate"]).bounded(case["full"], case["fullCost"], case["now"]) == case["bounded"]


def test_rate_texts() -> None:
    for case in _rate["texts"]:
        assert rate_of(case["text"]) == Rate(**case["rate"]), case


@pytest.mark.parametrize("case", _rate["refused"], ids=label)
def test_rate_refused(case: Case) -> None:
    _refuses("InvalidOption", rate_of, case["rate"])


@pytest.mark.parametrize("case", _sizing["cases"], ids=label)
def test_sizing(case: Case) -> None:
    given = dict(case["in"])
    actual, expected = sizing(Demand(drain_within=given.pop("drainWithin"), **given)), case["out"]
    if expected is None or actual is None:
        assert actual is expected
        return
    assert (actual.workers, actual.queue) == (expected["workers"], expected["queue"])
    for name, value in {**expected, **expected["wait"]}.items():
        if name not in ("wait", "workers", "queue"):
            assert getattr(actual, name) == pytest.approx(value, rel=1e-6), name


def test_entries_and_parks_are_checked() -> None:
    _refuses("InvalidName", NewEntry, "step")
    _refuses("InvalidOption", NewEntry, "=" + "é" * 256)
    _refuses("InvalidOption", NewEntry, "=\ud800")
    _refuses("InvalidOption", NewEntry, "=a", '"' + "x" * 65_536 + '"')
    _refuses("InvalidName", Signal, "=go", "{}", None, "019b76da-a800-7000-8000-000000000061")
    _refuses("InvalidOption", Signal, "!go/1")
    _refuses("InvalidOption", Signal, "!go/1", "{}", None, None, "q")
    _refuses("InvalidOption", Park, None, -1)
    _refuses("InvalidOption", Park, None, 0, (), (), "x" * 65_537)
    _refuses("InvalidName", Park, None, 0, ("no id",))
    assert NewEntry("=é", "{}", encode("é")).size == 3 + 2 + 4
