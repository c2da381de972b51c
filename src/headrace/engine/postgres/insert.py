"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg

from headrace.engine.postgres.caller_transaction import call_within
from headrace.engine.postgres.columns import (
    alike,
    as_json,
    differing,
    insert_columns,
    is_plain,
    once,
    shared,
)
from headrace.engine.postgres.connection.connection import Link, Rows
from headrace.engine.postgres.keys_in_doubt import KeysInDoubt
from headrace.engine.postgres.rates.keys import Rates
from headrace.engine.postgres.records import Records, conflict
from headrace.engine.postgres.sql import sql
from headrace.errors import EngineError
from headrace.model.insert_policy import InsertPolicy, replaced_by
from headrace.model.job import Inserted, NewJob, PolicyInserted
from headrace.model.views import RecordChange


class Producing(KeysInDoubt, Records, Rates):
    """Inserting, in a transaction of our own or of the caller, and by policy."""

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None, wait: bool = True
    ) -> list[Inserted]:
        if len(jobs) == 1 and record is None and is_plain(jobs[0]):
            return [await self._insert_one(jobs[0])]
        if not jobs:
            if record is not None:
                await self.record_put(record.kind, record.key, record.body, version=record.version)
            return []
        fresh = once(jobs)

        async def store(link: Link) -> Rows:
            if record is None:
                return await self._insert(link, fresh)
            return await self._insert_and_change(link, fresh, record)

        found = await self._store_by(self._common, fresh, store, wait=wait)
        return _answer(jobs, fresh, found)

    async def _insert_one(self, job: NewJob) -> Inserted:
        """What most calls are, with nothing in the way."""
        try:
            await self._fetch_in_queues(
                self._common,
                (job.queue,),
                sql.insert_one,
                self.clock.offset,
                job.id,
                job.args,
                *shared(job),
                job.meta,
            )
        except EngineError as error:
            if isinstance(error.__cause__, asyncpg.UniqueViolationError):
                return Inserted(job.id, False)
            raise
        return Inserted(job.id, True)

    async def _insert(self, link: Link, jobs: Sequence[NewJob]) -> Rows:
        offset, common = self.clock.offset, alike(jobs)
        if common is None:
            return await self._fetch_in_queues(
                link, _queues(jobs), sql.insert, offset, *insert_columns(jobs)
            )
        return await self._fetch_in_queues(
            link, (jobs[0].queue,), sql.insert_alike, offset, *differing(jobs), *common
        )

    async def _insert_and_change(
        self, link: Link, jobs: Sequence[NewJob], record: RecordChange
    ) -> Rows:
        found = await self._fetch_in_queues(
            link,
            _queues(jobs),
            sql.insert_and_record,
            record.kind,
            record.key,
            record.body,
            record.version,
            self.clock.offset,
            *insert_columns(jobs),
        )
        if found and found[0][0] == 0:
            raise conflict(record.kind, record.key, record.version)
        return found

    async def insert_by_policy(self, job: NewJob) -> PolicyInserted:
        policy = job.policy or InsertPolicy()

        async def store(link: Link) -> Rows:
            return await self._fetch_in_queues(
                link,
                (job.queue,),
                sql.insert_by_policy,
                self.clock.offset,
                policy.on_duplicate,
                policy.window,
                policy.max_wait,
                policy.when_full,
                replaced_by(job.id),
                *insert_columns([job]),
            )

        [row] = await self._store_by(self._common, [job], store, wait=True)
        stored, created, cancelled, stopping = row
        return PolicyInserted(
            None if stored is None else Inserted(stored, created),
            tuple(cancelled),
            tuple(stopping),
        )

    async def insert_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs in the open transaction of the caller's connection or session.

        What goes wrong on that connection is raised as the caller's driver raises it.
        """
        if not jobs:
            return []
        fresh = once(jobs)
        await self._spare_rates(fresh)
        found = await call_within(
            connection, self.address.quoted_schema, self.clock.offset, as_json(fresh)
        )
        if found and found[0][0] == 0:
            # Not in the caller's transaction: a new queue would be locked until that ends.
            await self._common.fetch(sql.ensure_queues, self.clock.offset, sorted(_queues(fresh)))
            found = found[1:]
        return _answer(jobs, fresh, found)


def _queues(jobs: Sequence[NewJob]) -> set[str]:
    return {job.queue for job in jobs}


def _answer(jobs: Sequence[NewJob], sent: Sequence[NewJob], found: Sequence[Any]) -> list[Inserted]:
    """`found` has those of the sent jobs that were not stored, by their number, with the one that
    exists instead.
    """
    inserted = [Inserted(job.id, True) for job in sent]
    for row in found:
        inserted[row[0] - 1] = Inserted(str(row[1]), False)
    if len(sent) == len(jobs):
        return inserted
    first = {job.id: each for job, each in zip(sent, inserted, strict=True)}
    repeated = {job_id: Inserted(each.id, False) for job_id, each in first.items()}
    return [first.pop(job.id, repeated[job.id]) for job in jobs]
