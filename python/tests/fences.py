"""Vectors count a job's fences from 1, or from that of the record that was restored. On Redis the first one is a high number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.vectors import Case


class Fences:
    """`asked` changes a step's fences into the store's, `told` the store's into the step's."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], int] = {}
        self._restored: dict[tuple[str, str], int] = {}

    def asked(self, asked: Case) -> None:
        for item in asked.get("items", ()):
            if "fence" in item:
                item["fence"] += self._before.get((asked.get("queue", "q"), item["id"]), 0)
        for record in asked.get("records", ()):
            job = record.get("queue", "q"), record["id"]
            self._restored[job] = record.get("fence", 0)
            if job in self._before:
                record["fence"] = record.get("fence", 0) + self._before[job]

    def told(self, op: str, queue: str, given: Any) -> Any:
        if op == "claim":
            return replace(given, jobs=[self._claimed(queue, job) for job in given.jobs])
        if op == "find":
            return [record and self._record(record) for record in given]
        if op == "list":
            return replace(given, jobs=[self._record(job) for job in given.jobs])
        return given

    def _claimed(self, queue: str, job: Any) -> Any:
        restored = self._restored.get((queue, job.id), 0)
        first = self._before.setdefault((queue, job.id), job.fence - 1 - restored)
        return replace(job, fence=job.fence - first)

    def _record(self, record: Any) -> Any:
        job = record.queue, record.id
        first = self._before.get(job)
        return replace(record, fence=self._restored.get(job, 0) if first is None else record.fence - first)
