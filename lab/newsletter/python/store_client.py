"""Millpond's store from Python, without a service between: the same database as that of the other languages."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from millpond.encoding import decode, encode
from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import ClaimedJob, Completion, NewJob
from millpond.stores import open_store

QUEUE = "emails"
LEASE = 8_000
MOST_PER_CLAIM = 100
TICK = 0.05
PASSING = ("StoreUnavailable", "StoreBusy")


def producer(url: str) -> Callable[[str], int]:
    store = open_store(url)
    store.configure(QUEUE, lease=LEASE)

    def register(email: str) -> int:
        try:
            [pushed] = store.push([NewJob(new_id(), QUEUE, encode({"email": email}), fresh=True)])
        except MillpondError as error:
            if error.code not in PASSING:
                raise
            return 503
        return 202 if pushed.status == "pushed" else 503

    return register


def _fields(job: ClaimedJob) -> dict[str, object]:
    data = decode(job.data.encoding, job.data.body)
    assert isinstance(data, dict)
    return data


def work(send: Callable[[str], None], url: str, slots: int) -> None:
    """Each mail in a thread of its own. The lease is longer than a mail takes, so it need not be extended."""
    store = open_store(url)
    store.configure(QUEUE, lease=LEASE)
    name, swept_at = f"python-{os.getpid()}", 0.0
    lock = threading.Lock()
    done: list[Completion] = []
    running = 0

    def run(job: ClaimedJob) -> None:
        nonlocal running
        try:
            send(str(_fields(job)["email"]))
            with lock:
                done.append(Completion(job.id, job.fence, key=job.key))
        finally:
            with lock:
                running -= 1

    print("ready", flush=True)
    while True:
        with lock:
            ended, done[:] = done[:], []
            free = slots - running
        try:
            if ended:
                store.complete(QUEUE, ended)
                ended = []
            if time.monotonic() - swept_at >= 1:
                swept_at = time.monotonic()
                while store.sweep(1_000).more:
                    pass
            jobs = store.claim(QUEUE, name, min(free, MOST_PER_CLAIM)).jobs if free > 0 else []
        except MillpondError as error:
            if error.code not in PASSING:
                raise
            jobs = []
            with lock:
                done.extend(ended)
        with lock:
            running += len(jobs)
        for job in jobs:
            threading.Thread(target=run, args=(job,), daemon=True).start()
        if not jobs:
            time.sleep(TICK)
