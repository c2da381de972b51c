"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from headrace.engine.redis.codec import insert_arguments
from headrace.engine.redis.records import conflict, guard
from headrace.engine.redis.store import Store
from headrace.engine.redis.wire import Part
from headrace.model.job import Inserted, NewJob
from headrace.model.views import RecordChange


class Producing(Store):
    """See `headrace.engine.base.Producing`."""

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None
    ) -> list[Inserted]:
        if not jobs and record is None:
            return []
        arguments, children = insert_arguments(jobs)
        if record is not None:
            answers = await self._insert_with(record, arguments)
        elif children:
            answers = await self.run("insert_related", "", "", "", *arguments)
        else:
            alone = len(jobs) == 1 and _may_run_at_once(jobs[0])
            answers = await self.run("insert_one" if alone else "insert", *arguments)
        return [
            Inserted(answer[1:].decode(), False)
            if answer[:1] == b"="
            else Inserted(answer.decode(), True)
            for answer in answers
        ]

    async def _insert_with(self, record: RecordChange, arguments: list[Part]) -> list[bytes]:
        field, version = f"{record.kind}\0{record.key}", guard(record.version)
        answer = await self.run("insert_related", field, record.body, version, *arguments)
        if isinstance(answer, int):
            raise conflict(record.kind, record.key, record.version, answer)
        return cast(list[bytes], answer)


def _may_run_at_once(job: NewJob) -> bool:
    """Whether a job waits for nothing, neither for a time nor for others."""
    return job.lane is None and job.run_at is None and not job.delay > 0
