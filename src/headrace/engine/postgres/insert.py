"""Taking jobs in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from time import monotonic
from typing import Any

import asyncpg

from headrace.engine.postgres.caller_transaction import call_within
from headrace.engine.postgres.columns import (
    alike,
    as_json,
    differing,
    insert_columns,
    is_plain,
    shared,
)
from headrace.engine.postgres.connection.connection import Link, Rows
from headrace.engine.postgres.records import Records, conflict
from headrace.engine.postgres.sql import query
from headrace.errors import EngineError, EngineUnavailable, KeyInDoubt
from headrace.model.job import Inserted, NewJob
from headrace.model.views import RecordChange

_INSERT = query("insert")
_INSERT_ONE = query("insert_one")
_INSERT_ALIKE = query("insert_alike")
_INSERT_AND_RECORD = query("insert_and_record")
_ENSURE_QUEUES = query("ensure_queues")

# How long an insert waits until it is known whether a key is taken, and how often it asks.
LONGEST_DOUBT = 30.0
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.25


class Producing(Records):
    """Inserting, in a transaction of our own or of the caller.

    A caller's transaction that has stored a job with a key stays open as long as the caller likes,
    and only its end tells whether that key is taken. A call that stores a job with the same key
    waits for that here and not on the server, where it would hold up all verbs that share its
    connection, perhaps those that the caller is waiting for: the server gives up at once (see
    functions/insert/own_keys_soon.sql), and now and then it is asked again, by a connection for
    just that.
    """

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None, wait: bool = True
    ) -> list[Inserted]:
        if len(jobs) == 1 and record is None and is_plain(jobs[0]):
            return [await self._insert_one(jobs[0])]
        if not jobs:
            if record is not None:
                await self.record_put(record.kind, record.key, record.body, version=record.version)
            return []
        fresh = _once(jobs)
        try:
            if self._in_doubt and not self._in_doubt.keys().isdisjoint(_keys(fresh)):
                raise self._doubt(fresh)
            found = await self._store(self._common, fresh, record)
        except KeyInDoubt:
            if not wait:
                raise
            found = await self._store_when_known(fresh, record)
        return _answer(jobs, fresh, found)

    async def _insert_one(self, job: NewJob) -> Inserted:
        """What most calls are, with nothing in the way."""
        try:
            await self._fetch_in_queues(
                self._common,
                (job.queue,),
                _INSERT_ONE,
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

    async def _store(self, link: Link, jobs: Sequence[NewJob], record: RecordChange | None) -> Rows:
        """By this connection. Raises `KeyInDoubt` if a key may be taken or not."""
        try:
            if record is None:
                return await self._insert(link, jobs)
            return await self._insert_and_change(link, jobs, record)
        except EngineUnavailable as error:
            if isinstance(error.__cause__, asyncpg.LockNotAvailableError) and _keys(jobs):
                raise self._doubt(jobs) from error
            raise

    async def _store_when_known(self, jobs: Sequence[NewJob], record: RecordChange | None) -> Rows:
        """Ask now and then. Nothing is held meanwhile, here or on the server."""
        keys, until, pause = _keys(jobs), monotonic() + LONGEST_DOUBT, FIRST_PAUSE
        for key in keys:
            self._in_doubt[key] = self._in_doubt.get(key, 0) + 1
        try:
            while True:
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - a jitter
                try:
                    return await self._store(self._doubts, jobs, record)
                except KeyInDoubt:
                    if monotonic() >= until:
                        raise
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            for key in keys:
                self._in_doubt[key] -= 1
                if not self._in_doubt[key]:
                    del self._in_doubt[key]

    def _doubt(self, jobs: Sequence[NewJob]) -> KeyInDoubt:
        task, key = min(_keys(jobs))
        which = f"the key {key!r} of task {task!r}"
        if len(_keys(jobs)) > 1:
            which = f"one of {len(_keys(jobs))} keys, such as {key!r} of task {task!r},"
        return KeyInDoubt(
            f"PostgreSQL at {self.address.shown}: {which} belongs to a job of a transaction that "
            "is still open, so whether it is taken is not known. Nothing was stored. End that "
            "transaction (pg_stat_activity shows it), or enqueue again later."
        )

    async def _insert(self, link: Link, jobs: Sequence[NewJob]) -> Rows:
        offset, common = self.clock.offset, alike(jobs)
        if common is None:
            return await self._fetch_in_queues(
                link, _queues(jobs), _INSERT, offset, *insert_columns(jobs)
            )
        return await self._fetch_in_queues(
            link, (jobs[0].queue,), _INSERT_ALIKE, offset, *differing(jobs), *common
        )

    async def _insert_and_change(
        self, link: Link, jobs: Sequence[NewJob], record: RecordChange
    ) -> Rows:
        found = await self._fetch_in_queues(
            link,
            _queues(jobs),
            _INSERT_AND_RECORD,
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

    async def insert_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs in the open transaction of the caller's connection or session.

        What goes wrong on that connection is raised as the caller's driver raises it.
        """
        if not jobs:
            return []
        fresh = _once(jobs)
        found = await call_within(
            connection, self.address.quoted_schema, self.clock.offset, as_json(fresh)
        )
        if found and found[0][0] == 0:
            # Not in the caller's transaction: a new queue would be locked until that ends.
            await self._common.fetch(_ENSURE_QUEUES, self.clock.offset, sorted(_queues(fresh)))
            found = found[1:]
        return _answer(jobs, fresh, found)


def _queues(jobs: Sequence[NewJob]) -> set[str]:
    return {job.queue for job in jobs}


def _keys(jobs: Sequence[NewJob]) -> set[tuple[str, str]]:
    return {(job.task, job.key) for job in jobs if job.key is not None}


def _once(jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """The jobs without those whose id came earlier in the call."""
    if len(jobs) == 1 or len({job.id for job in jobs}) == len(jobs):
        return jobs
    first: dict[str, NewJob] = {}
    for job in jobs:
        first.setdefault(job.id, job)
    return list(first.values())


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
