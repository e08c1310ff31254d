"""A producer and a worker for load tests, as processes that may be killed at any moment.

    python -m tests.load produce URL OPTIONS QUEUE FIRST COUNT     pushes numbered jobs; prints the id of each as soon as it is acknowledged
    python -m tests.load work URL OPTIONS QUEUE LOG                runs jobs until it is killed; appends the id of each run to LOG
    python -m tests.load limited URL OPTIONS QUEUE LOG             the same, with a line for each start and end: its group and id

OPTIONS is JSON for `open_store`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from millpond.encoding import encode
from millpond.errors import MillpondError
from millpond.ids import new_id
from millpond.jobs import ClaimedJob, Completion, Extension, NewJob
from millpond.store import Store
from millpond.stores import open_store

LEASE = 1_500
PUSHED_AT_ONCE = 20
CLAIMED_AT_ONCE = 50
COMPLETED_AT_ONCE = 10
PASSING = ("StoreUnavailable", "StoreBusy")


def produce(store: Store, queue: str, first: int, count: int) -> None:
    store.configure(queue, lease=LEASE)
    for start in range(first, first + count, PUSHED_AT_ONCE):
        numbers = range(start, min(start + PUSHED_AT_ONCE, first + count))
        left = [NewJob(new_id(), queue, encode({"n": number}), fresh=True) for number in numbers]
        while left:
            left = _push(store, left)


def _push(store: Store, jobs: list[NewJob]) -> list[NewJob]:
    """The jobs that are to be pushed again."""
    again = [replace(job, fresh=False) for job in jobs]
    try:
        outcomes = store.push(jobs)
    except MillpondError as error:
        if error.code not in PASSING:
            raise
        return again
    stored = [each.id for each in outcomes if each.status in ("pushed", "existing")]
    sys.stdout.write("".join(f"{id}\n" for id in stored))
    sys.stdout.flush()
    return [job for job, each in zip(again, outcomes, strict=True) if each.status not in ("pushed", "existing")]


class Worker:
    def __init__(self, store: Store, queue: str, log: str) -> None:
        self._store, self._queue = store, queue
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._held: dict[str, ClaimedJob] = {}
        self._stale: set[str] = set()

    def work(self) -> None:
        threading.Thread(target=self._keep_leases, daemon=True).start()
        name, swept_at = f"python-{os.getpid()}", 0.0
        while True:
            try:
                if time.monotonic() - swept_at >= 1:
                    swept_at = time.monotonic()
                    while self._store.sweep(1_000).more:
                        pass
                jobs = self._store.claim(self._queue, name, CLAIMED_AT_ONCE).jobs
                self._held = {job.id: job for job in jobs}
                self._run(jobs)
                if not jobs:
                    time.sleep(0.02)
            except MillpondError as error:
                if error.code not in PASSING:
                    raise
                time.sleep(0.05)

    def _run(self, jobs: list[ClaimedJob]) -> None:
        for start in range(0, len(jobs), COMPLETED_AT_ONCE):
            ran = [job for job in jobs[start : start + COMPLETED_AT_ONCE] if job.id not in self._stale]
            for job in ran:
                os.write(self._log, f"{job.id}\n".encode())
            self._store.complete(self._queue, [Completion(job.id, job.fence, key=job.key) for job in ran])
            for job in ran:
                self._held.pop(job.id)

    def _keep_leases(self) -> None:
        while True:
            time.sleep(LEASE / 3_000)
            held = list(self._held.values())
            try:
                items = [Extension(job.id, job.fence, key=job.key) for job in held]
                outcomes = self._store.extend(self._queue, items) if items else []
                self._stale |= {job.id for job, told in zip(held, outcomes, strict=bool(items)) if told != "ok"}
            except MillpondError:
                continue  # the next turn comes before the leases end


def run_limited(store: Store, queue: str, log: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def work(number: int) -> None:
        while True:
            claimed = store.claim(queue, f"python-{os.getpid()}-{number}", 1)
            for job in claimed.jobs:
                os.write(file, f"start {job.group} {job.id} Python\n".encode())
                time.sleep(0.002)
                os.write(file, f"end {job.group} {job.id} Python\n".encode())
                store.complete(queue, [Completion(job.id, job.fence, key=job.key)])
            if not claimed.jobs:
                time.sleep(0.005)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def main(role: str, url: str, options: str, queue: str, *more: str) -> None:
    store = open_store(url, **json.loads(options))
    if role == "produce":
        produce(store, queue, int(more[0]), int(more[1]))
        store.close()
    elif role == "limited":
        run_limited(store, queue, more[0])
    else:
        Worker(store, queue, more[0]).work()


if __name__ == "__main__":
    main(*sys.argv[1:])
