"""Inserting jobs: each goes to the store of its queue, families and records stay together."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from headrace.engine.base import Engine, TransactionalProducing
from headrace.engine.several.families import refuse_split
from headrace.engine.several.store.member import Member
from headrace.engine.several.store.members import SeveralMembers
from headrace.errors import (
    EngineUnavailable,
    InvalidSetting,
    KeyInDoubt,
    RecordConflict,
    StorageFull,
    StoreUnavailable,
)
from headrace.model.job import Inserted, Job, NewJob, PolicyInserted
from headrace.model.views import RecordChange


class Producing(SeveralMembers):
    """Taking jobs in."""

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None, wait: bool = True
    ) -> list[Inserted]:
        """Store jobs, in one step for each store. With a record, jobs that have a key go to the
        store of their queue, before it; the others go with it.
        """
        if record is None:
            shares = await self._shares_of(jobs)
            if len(shares) == 1:
                [member] = shares
                return await self._insert(member, jobs, None, wait=wait)
        else:
            shares = await self._shares_beside_record(jobs)
            if len(shares) > 1:
                await self._check_version(record)
        # The store of the record is last: what was not stored before it is done again with it.
        order = sorted(shares, key=lambda member: member is self.default)
        found: dict[int, Inserted] = {}
        for member in order:
            share = shares[member]
            change = record if member is self.default else None
            try:
                answers = await self._insert(member, [jobs[at] for at in share], change, wait=wait)
            except (EngineUnavailable, StorageFull) as error:
                if not found:
                    raise
                raise _partly(error, jobs, found, member) from error
            found |= dict(zip(share, answers, strict=True))
        return [found[at] for at in range(len(jobs))]

    async def _insert(
        self, member: Member, jobs: Sequence[NewJob], record: RecordChange | None, *, wait: bool
    ) -> list[Inserted]:
        if member.away is not None:  # producers of jobs for other stores may wait for this call
            raise member.unavailable(member.away)
        answers = await member.ask(lambda engine: engine.insert(jobs, record=record, wait=wait))
        self.remember(member, [each.id for each in answers])
        return answers

    async def insert_by_policy(self, job: NewJob) -> PolicyInserted:
        """Store a job with a policy in the store of its queue."""
        [member] = await self._shares_of([job])
        answer = await member.ask(lambda engine: engine.insert_by_policy(job))
        named = [] if answer.inserted is None else [answer.inserted.id]
        self.remember(member, [*named, *answer.cancelled, *answer.stopping])
        return answer

    async def insert_within(self, connection: Any, jobs: Sequence[NewJob]) -> list[Inserted]:
        """Store jobs in an open transaction of the one store that all of them belong to."""
        shares = await self._shares_of(jobs)
        for member, share in shares.items():
            queues = sorted({jobs[at].queue for at in share})
            if not hasattr(member.engine, "insert_within"):
                raise InvalidSetting(
                    f"options(conn=…) needs PostgreSQL, but queue {queues[0]!r} is in "
                    f"{member.shown}; give it a store in PostgreSQL, or leave conn out"
                )
            if len(shares) > 1:
                raise InvalidSetting(
                    "jobs of one transaction have to be in one store, but queue "
                    f"{queues[0]!r} is in {member.shown} and others are not; use one transaction "
                    "for each store"
                )
        [member] = shares
        answers = await cast(TransactionalProducing, member.engine).insert_within(connection, jobs)
        self.remember(member, [each.id for each in answers])
        return answers

    async def _shares_of(self, jobs: Sequence[NewJob]) -> dict[Member, list[int]]:
        parents = [job.parent for job in jobs if job.parent is not None]
        families = await self.locate(parents) if parents else {}
        shares: dict[Member, list[int]] = {}
        for at, job in enumerate(jobs):
            member = home = self.home_of(job.queue)
            if job.parent is not None:
                # A parent that is not there is a job's own affair.
                member = families.get(job.parent, home)
                if member is not home:
                    refuse_split(job, f"its parent {job.parent}", member, home)
            shares.setdefault(member, []).append(at)
        return shares or {self.default: []}

    async def _shares_beside_record(self, jobs: Sequence[NewJob]) -> dict[Member, list[int]]:
        shares: dict[Member, list[int]] = {self.default: []}
        homes = [self.home_of(job.queue) for job in jobs]
        beside = [job for job, home in zip(jobs, homes, strict=True) if home is not self.default]
        existing = await self._existing([job for job in beside if job.key is None])
        for at, (job, home) in enumerate(zip(jobs, homes, strict=True)):
            member = home
            if home is not self.default and job.key is None and job.id not in existing:
                refuse_split(job, "the record that it is stored with", self.default, home)
                member = self.default
            shares.setdefault(member, []).append(at)
        return shares

    async def _existing(self, jobs: Sequence[NewJob]) -> set[str]:
        """Return which of these are in the stores of their queues already, as far as these answer:
        such a job was not stored with a record.
        """
        found: set[str] = set()
        for job in jobs:
            home = self.home_of(job.queue)
            with contextlib.suppress(StoreUnavailable):
                found |= {each.id for each in await home.ask_soon(_getting(job.id))}
        return found

    async def _check_version(self, record: RecordChange) -> None:
        if record.version is None:
            return
        kept = await self.default.ask(lambda engine: engine.record_get(record.kind, record.key))
        if (0 if kept is None else kept.version) != record.version:
            raise RecordConflict(
                f"record {record.kind}/{record.key} is not at version {record.version} any more"
            )


def _getting(job_id: str) -> Callable[[Engine], Awaitable[list[Job]]]:
    return lambda engine: engine.get([job_id])


def _partly(
    error: EngineUnavailable | StorageFull,
    jobs: Sequence[NewJob],
    found: dict[int, Inserted],
    member: Member,
) -> EngineUnavailable:
    """Return the error of a call that has stored some of its jobs."""
    left = sorted({jobs[at].queue for at in range(len(jobs)) if at not in found})
    told = (
        f"{_naming(member, error)}; {len(found)} of {len(jobs)} jobs were stored in other stores, "
        f"those of the queues {', '.join(map(repr, left))} were not. Repeat the call with the same "
        "jobs: none is stored twice"
    )
    if isinstance(error, KeyInDoubt):
        return KeyInDoubt(told)
    return StoreUnavailable(told, stored=tuple(each.id for each in found.values()))


def _naming(member: Member, error: Exception) -> str:
    return str(error) if isinstance(error, StoreUnavailable) else f"{member.shown}: {error}"
