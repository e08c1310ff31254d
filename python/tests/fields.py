"""What another language is to find, or has written, field by field.

    python -m tests.fields push URL OPTIONS QUEUE       pushes a job with every field; prints its id
    python -m tests.fields run URL OPTIONS QUEUE        claims what waits and ends each job as its data says
    python -m tests.fields find URL OPTIONS ID…         prints a line of JSON per job; bytes are told in hexadecimal
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from millpond.encoding import Body, decode, encode
from millpond.ids import new_id
from millpond.jobs import Completion, Extension, Failure, JobError, NewJob, Record
from millpond.store import Store
from millpond.stores import open_store

DATA = {"n": 1, "bytes": b"\x01\xff", "big": 2**63, "large": 2**40, "text": "é€🌊\0"}
ERROR = JobError("HandlerFailed", "ValueError", "no address 🌊", "ValueError: no address\n  at mail")


def push(store: Store, queue: str) -> None:
    more: dict[str, Any] = {"attempts": 7, "timeout": 5_000, "trace": "00-1", "fresh": True}
    job = NewJob(new_id(), queue, encode(DATA), 6, key="welcome:42", group="tenant-7", **more)
    store.push([job])
    print(job.id)


def run(store: Store, queue: str) -> None:
    for job in store.claim(queue, "python", 100).jobs:
        store.extend(queue, [Extension(job.id, job.fence, encode({"half": b"\x07"}), key=job.key)])
        data = decode(job.data.encoding, job.data.body)
        assert isinstance(data, dict)
        match data["end"]:
            case "done":
                store.complete(queue, [Completion(job.id, job.fence, encode(DATA), key=job.key)])
            case "dead":
                store.fail(queue, [Failure(job.id, job.fence, error=ERROR, delay=None, key=job.key)])
            case "retry":
                store.fail(queue, [Failure(job.id, job.fence, error=ERROR, delay="backoff", key=job.key)])
            case "cancelled":
                store.cancel([job.id])


def told(record: Record | None) -> dict[str, Any] | None:
    if record is None:
        return None
    found = asdict(record)
    for name in ("data", "progress", "result"):
        found[name] = plain(getattr(record, name))
    return found


def plain(body: Body | None) -> Any:
    value = None if body is None else decode(body.encoding, body.body)
    return json.loads(json.dumps(value, default=lambda given: given.hex()))


def main(role: str, url: str, options: str, *more: str) -> None:
    store = open_store(url, **json.loads(options))
    if role == "find":
        for record in store.find(more):
            print(json.dumps(told(record)))
    else:
        {"push": push, "run": run}[role](store, *more)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
