"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.redis.codec import insert_arguments
from headrace.engine.redis.store import Store
from headrace.model.job import Inserted, NewJob


class Producing(Store):
    """See `headrace.engine.base.Producing`."""

    async def insert(self, jobs: Sequence[NewJob]) -> list[Inserted]:
        if not jobs:
            return []
        answers = await self.run("insert", *insert_arguments(jobs))
        return [
            Inserted(answer[1:].decode(), False)
            if answer[:1] == b"="
            else Inserted(answer.decode(), True)
            for answer in answers
        ]
