"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.redis.codec import insert_arguments
from headrace.engine.redis.records import conflict, guard
from headrace.engine.redis.store import Store
from headrace.model.job import Inserted, NewJob
from headrace.model.views import RecordChange


class Producing(Store):
    """See `headrace.engine.base.Producing`."""

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None
    ) -> list[Inserted]:
        arguments = insert_arguments(jobs)
        if record is not None:
            field = f"{record.kind}\0{record.key}"
            arguments += (field, record.body, guard(record.version))
        elif not jobs:
            return []
        answers = await self.run("insert", *arguments)
        if record is not None and isinstance(answers, int):
            raise conflict(record.kind, record.key, record.version, answers)
        return [
            Inserted(answer[1:].decode(), False)
            if answer[:1] == b"="
            else Inserted(answer.decode(), True)
            for answer in answers
        ]
