"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.engine.postgres.jobs import as_json, columns
from headrace.engine.postgres.sql import query
from headrace.engine.postgres.store import Store
from headrace.engine.postgres.within import call_within
from headrace.model.job import Inserted, NewJob

_INSERT = query("insert")


class Producing(Store):
    """Inserting, in a transaction of our own or of the caller."""

    async def insert(self, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs durably, in this order; the answer is in the same order."""
        if not jobs:
            return []
        fresh = _once(jobs)
        await self._ensure_queues({job.queue for job in fresh})
        found = await self._common.fetch(_INSERT, self.clock.offset, *columns(fresh))
        return _answer(jobs, fresh, found)

    async def insert_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs in the open transaction of the caller's connection or session.

        What goes wrong on that connection is raised as the caller's driver raises it.
        """
        if not jobs:
            return []
        # Not in the caller's transaction: a new queue would be locked until it ends.
        fresh = _once(jobs)
        await self._ensure_queues({job.queue for job in fresh})
        found = await call_within(
            connection, self.address.quoted_schema, self.clock.offset, as_json(fresh)
        )
        return _answer(jobs, fresh, found)


def _once(jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """The jobs without those whose id came earlier in the call."""
    first: dict[str, NewJob] = {}
    for job in jobs:
        first.setdefault(job.id, job)
    return jobs if len(first) == len(jobs) else list(first.values())


def _answer(jobs: Sequence[NewJob], sent: Sequence[NewJob], found: Sequence[Any]) -> list[Inserted]:
    """`found` has those of the sent jobs that were not stored, by their number, with the one that
    exists instead.
    """
    answers = [Inserted(job.id, True) for job in sent]
    for row in found:
        answers[row[0] - 1] = Inserted(str(row[1]), False)
    if len(sent) == len(jobs):
        return answers
    first = {job.id: answer for job, answer in zip(sent, answers, strict=True)}
    repeated = {job_id: Inserted(answer.id, False) for job_id, answer in first.items()}
    return [first.pop(job.id, repeated[job.id]) for job in jobs]
