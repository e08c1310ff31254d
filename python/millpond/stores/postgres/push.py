from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from millpond.errors import LostAnswer, MillpondError
from millpond.jobs import NewJob, Pushed
from millpond.stores.postgres.calls import Calls, json_of
from millpond.stores.postgres.connection import ask, coded
from millpond.stores.postgres.wire import tagged
from millpond.stores.wire import camel

PUSH_AGAIN_FOR: Final = 10.0


def push(calls: Calls, jobs: Sequence[NewJob], whole: bool) -> Sequence[Pushed]:
    function, more = _call(jobs, whole)
    end, again = time.monotonic() + PUSH_AGAIN_FOR, False
    while True:
        try:
            given = _given(jobs, own=True, again=again, listener=calls.listener, now=calls.now, **more)
            return pushed_of(calls, calls.answer(function, **given), jobs)
        except MillpondError as error:
            # After a lost answer nobody knows whether the jobs are stored. Whatever comes now, only an answer tells.
            again = again or isinstance(error, LostAnswer)
            if not again or time.monotonic() > end:
                raise
        time.sleep(0.05)


def push_within(calls: Calls, tx: psycopg.Connection[Any], jobs: Sequence[NewJob], whole: bool) -> Sequence[Pushed]:
    # This look cannot fail on the server, which would abort the caller's transaction.
    if tx.info.transaction_status != TransactionStatus.INTRANS:
        raise MillpondError("TransactionMismatch", "tx is not a psycopg connection with an open transaction")
    for queue in {job.queue for job in jobs}:
        # Others would wait for a queue that the caller's transaction makes.
        calls.rows("make_queue", queue=queue)
    with coded(), tx.transaction():
        if _install_of(calls, tx) != calls.install:
            calls.install = calls.look()
        if _install_of(calls, tx) != calls.install:
            raise MillpondError("TransactionMismatch", "tx is on another database than the store")
        function, more = _call(jobs, whole)
        sql, *given = json_of(function, _given(jobs, own=False, now=calls.now, **more))
        answers = ask(tx, calls.schema.sql(sql), given)
    return pushed_of(calls, answers, jobs)


def _install_of(calls: Calls, tx: psycopg.Connection[Any]) -> object:
    there = "select pg_catalog.to_json(pg_catalog.to_regprocedure('millpond.installed()')::pg_catalog.text)"
    if ask(tx, calls.schema.sql(there)) is None:
        return None
    return ask(tx, calls.schema.sql("select pg_catalog.json_extract_path(millpond.installed(), 'install')"))


def _call(jobs: Sequence[NewJob], whole: bool) -> tuple[str, dict[str, Any]]:
    """The function that stores these jobs, and its further argument."""
    if whole or any(job.after or job.part_of for job in jobs):
        return "push_graph", {"whole": whole}
    return "push_jobs", {}


def _given(jobs: Sequence[NewJob], **more: Any) -> dict[str, Any]:
    return {"jobs": json.dumps([fields_of_job(job) for job in jobs]), **more}


def fields_of_job(job: NewJob) -> dict[str, Any]:
    own = {"data": tagged(job.data), "once": job.once and job.once.to_json()}
    return {camel(name): value for name, value in vars(job).items()} | own


def pushed_of(calls: Calls, answers: Sequence[str], jobs: Sequence[NewJob] = ()) -> Sequence[Pushed]:
    found = []
    for at, answer in enumerate(answers):
        status: Any
        status, id, *parent = answer.split(" ")
        if status == "full":
            calls.ask("room", jobs[at].queue)
        found.append(Pushed(status, id, parent=parent[0] if parent else None))
    return found
