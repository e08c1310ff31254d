"""The newsletter of experiment E2 in Python, with threads and the standard library alone, but for Millpond's own stores.

    newsletter.py plain FOLDER PORT THREADS             sends the mail before it answers
    newsletter.py queue FOLDER PORT SIZE WORKERS        a bounded queue.Queue, and workers in the same process
    newsletter.py producer FOLDER PORT URL              pushes to millpond serve
    newsletter.py worker FOLDER URL SLOTS               works on what millpond serve has
    newsletter.py store-producer FOLDER PORT STORE      pushes with python/ into the store itself
    newsletter.py store-worker FOLDER STORE SLOTS       works with python/ on the store itself
"""

from __future__ import annotations

import os
import queue
import socketserver
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs

MAIL_TAKES = 5.0
# Threads of a server whose handler does not wait for the mail.
SERVER_THREADS = 32

Register = Callable[[str], int]
"""Takes an address, gives the status of the answer."""


class Mailbox:
    """The mail server: slow, and it really writes each mail. A maildir: a mail in new/ is whole, even after a SIGKILL."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) / "Maildir"
        self._lock = threading.Lock()
        self._sent = 0
        for part in ("tmp", "new", "cur"):
            (self._folder / part).mkdir(parents=True, exist_ok=True)

    def send(self, email: str) -> None:
        time.sleep(MAIL_TAKES)
        with self._lock:
            self._sent += 1
            name = f"{time.time_ns() // 1_000_000}.P{os.getpid()}Q{self._sent}.python"
        draft = self._folder / "tmp" / name
        with open(draft, "wb") as file:
            file.write(f"To: {email}\r\nSubject: Welcome to the newsletter\r\n\r\nGood to have you here.\r\n".encode())
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self._folder / "new" / name)


class Subscribers:
    """The address book. A saved address is on the disk before the caller goes on."""

    def __init__(self, folder: str) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(Path(folder) / "subscribers.db", check_same_thread=False, isolation_level=None)
        self._db.executescript("pragma journal_mode = wal; pragma synchronous = full;")
        self._db.execute("create table if not exists subscribers (email text primary key) strict")

    def save(self, email: str) -> None:
        with self._lock:
            self._db.execute("insert into subscribers (email) values (?) on conflict do nothing", (email,))


class Server(socketserver.TCPServer):
    allow_reuse_address = True
    request_queue_size = 4096

    def __init__(self, port: int, threads: int, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self._pool = ThreadPoolExecutor(threads)

    def process_request(self, request: object, client_address: object) -> None:
        self._pool.submit(self._serve, request, client_address)

    def _serve(self, request: object, client_address: object) -> None:
        try:
            self.finish_request(request, client_address)  # type: ignore[arg-type]
        except OSError:
            pass  # The client has gone.
        finally:
            self.shutdown_request(request)  # type: ignore[arg-type]


def serve(folder: str, port: int, threads: int, register: Register) -> None:
    subscribers = Subscribers(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"] or 0)).decode()
            email = parse_qs(body).get("email", [""])[0]
            if self.path != "/register" or "@" not in email:
                self._answer(400)
                return
            subscribers.save(email)
            self._answer(register(email))

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = Server(port, threads, Handler)
    print("ready", flush=True)
    server.serve_forever()


def plain(mailbox: Mailbox) -> Register:
    def register(email: str) -> int:
        mailbox.send(email)
        return 200

    return register


def queued(mailbox: Mailbox, size: int, workers: int) -> Register:
    waiting: queue.Queue[str] = queue.Queue(size)

    def work() -> None:
        while True:
            mailbox.send(waiting.get())

    for _ in range(workers):
        threading.Thread(target=work, daemon=True).start()

    def register(email: str) -> int:
        waiting.put(email)  # Waits while the queue is full.
        return 202

    return register


def main(mode: str, folder: str, *more: str) -> None:
    if mode == "plain":
        serve(folder, int(more[0]), int(more[1]), plain(Mailbox(folder)))
    elif mode == "queue":
        serve(folder, int(more[0]), SERVER_THREADS, queued(Mailbox(folder), int(more[1]), int(more[2])))
    elif mode == "producer":
        import serve_client

        serve(folder, int(more[0]), SERVER_THREADS, serve_client.producer(more[1]))
    elif mode == "worker":
        import serve_client

        serve_client.work(Mailbox(folder).send, more[0], int(more[1]))
    elif mode == "store-producer":
        import store_client

        serve(folder, int(more[0]), SERVER_THREADS, store_client.producer(more[1]))
    elif mode == "store-worker":
        import store_client

        store_client.work(Mailbox(folder).send, more[0], int(more[1]))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
