"""Millpond through `millpond serve`: http.client is all it needs."""

from __future__ import annotations

import http.client
import json
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

QUEUE = "/v1/queues/emails"
LEASE = 8_000
# Most jobs of one claim that the service gives.
MOST_PER_CLAIM = 100
SETTLE_EVERY = 0.05
PASSING = (OSError, http.client.HTTPException)


class Connection:
    """One for each thread, since a connection has one request at a time."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        self._local = threading.local()

    def post(self, path: str, body: Any, prefer: str = "") -> tuple[int, Any]:
        headers = {"content-type": "application/json", **({"prefer": prefer} if prefer else {})}
        text = json.dumps(body)
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None) or http.client.HTTPConnection(self._address, timeout=60)
            self._local.connection = connection
            try:
                connection.request("POST", path, text, headers)
                answer = connection.getresponse()
                content = answer.read()
                return answer.status, json.loads(content) if content else None
            except PASSING:
                # An idle connection that the service has closed: a new one, once.
                connection.close()
                self._local.connection = None
                if attempt == 2:
                    raise
        raise AssertionError


def producer(url: str) -> Callable[[str], int]:
    service = Connection(url)

    def register(email: str) -> int:
        try:
            status, _ = service.post(QUEUE + "/jobs", {"data": {"email": email}})
        except PASSING:
            return 503
        return 202 if status == 202 else 503

    return register


def work(send: Callable[[str], None], url: str, slots: int) -> None:
    service = Connection(url)
    free = threading.Semaphore(slots)
    sent: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_settle, args=(service, sent), daemon=True).start()

    def run(job: dict[str, Any]) -> None:
        try:
            send(job["data"]["email"])
            sent.put({"id": job["id"], "fence": job["fence"]})
        finally:
            free.release()

    name = f"python-{os.getpid()}"
    print("ready", flush=True)
    while True:
        limit = 0
        while limit < MOST_PER_CLAIM and free.acquire(blocking=limit == 0):
            limit += 1
        jobs: list[dict[str, Any]] = []
        try:
            status, answer = service.post(QUEUE + "/claims", {"worker": name, "limit": limit, "lease": LEASE}, "wait=10")
            jobs = answer["jobs"] if status == 200 else []
        except PASSING:
            time.sleep(1)
        for _ in range(limit - len(jobs)):
            free.release()
        for job in jobs:
            threading.Thread(target=run, args=(job,), daemon=True).start()


def _settle(service: Connection, sent: queue.Queue[dict[str, Any]]) -> None:
    """What has ended within 50 ms is told in one request."""
    while True:
        done = [sent.get()]
        time.sleep(SETTLE_EVERY)
        while len(done) < MOST_PER_CLAIM and not sent.empty():
            done.append(sent.get())
        while True:
            try:
                service.post(QUEUE + "/settle", {"complete": done})
                break
            except PASSING:
                time.sleep(SETTLE_EVERY)
