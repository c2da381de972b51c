"""Child jobs: created exactly once over all attempts, and awaited without a slot."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec

from headrace.engine.bounded_reads import MOST_JOBS, PART_BYTES
from headrace.enqueue import batches
from headrace.errors import InvalidInput, NotRetryable
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.durable.children import GONE, EndedChild
from headrace.model.durable.entries import CHILDREN, ChildrenRecord
from headrace.model.durable.followers import FOLLOWS
from headrace.model.durable.writes import Entry
from headrace.model.ids import new_id, nth_id
from headrace.model.job import Job, NewJob
from headrace.model.retry import LONGEST_DELAY
from headrace.model.sealed import SEALED_ERROR, is_sealed, key_of_args
from headrace.model.status import Status
from headrace.tracing.carrier import without

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext


class Group(msgspec.Struct, eq=False):
    """Children that were created together, as this run knows them."""

    name: str
    ids: list[str]
    # Stored in this run: there is no need to check whether they have ended.
    fresh: bool
    in_own_lane: bool


class ChildJobs:
    """The children of one attempt. Used on the worker's event loop."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._groups: list[Group] = []

    async def spawn(self, entry_name: str, jobs: list[NewJob]) -> list[str]:
        """Store children and return their ids. These follow from what is recorded first, so that a
        repetition after a crash stores none twice.
        """
        if not jobs:
            return []
        context = self._context
        recorded = (await context.replayed.of_kind(CHILDREN)).get(entry_name)
        if recorded is None:
            record = ChildrenRecord(base=new_id(), count=len(jobs))
            await self._write(entry_name, record)
        else:
            record = msgspec.json.decode(recorded, type=ChildrenRecord)
            if record.count != len(jobs):
                raise NotRetryable(
                    f"children {entry_name!r} were {record.count} at first and are {len(jobs)} "
                    "now; a handler has to make the same ones in each attempt: keep what they "
                    "depend on in a stage"
                )
        ids = [nth_id(record.base, index) for index in range(record.count)]
        group = Group(
            entry_name,
            ids,
            fresh=not record.stored,
            in_own_lane=any(
                job.lane is not None and (job.queue, job.lane) == (context.queue, context.lane)
                for job in jobs
            ),
        )
        if not record.stored:
            meta = context.meta
            meta.pop(FOLLOWS, None)  # that is the parent's own
            if context.tracing is not None:
                meta = without(meta)  # so is this
            async for batch in batches(
                self._child(job, child_id, entry_name, meta)
                for job, child_id in zip(jobs, ids, strict=True)
            ):
                await self._insert(batch)
            record.stored = True
            await self._write(entry_name, record)
        self._groups.append(group)
        return ids

    async def _insert(self, jobs: list[NewJob]) -> None:
        context = self._context
        if context.tracing is None:
            await context.retry_while_unavailable(functools.partial(context.engine.insert, jobs))
            return
        with context.tracing.enqueuing_together(jobs) as traced:
            await context.retry_while_unavailable(functools.partial(context.engine.insert, traced))

    async def gather(self, ids: list[str]) -> list[EndedChild]:
        """Return how these children ended; suspend the handler until all have."""
        for group in self._groups_of(ids):
            if group.in_own_lane:
                await self._refuse_to_wait_for_itself(group)
            if group.fresh:
                # Those that have ended meanwhile are found after the handler is suspended.
                self._suspend(group.name, len(group.ids) - len(set(group.ids) & set(ids)))
        found = await self._read(ids)
        unfinished = {job.id: job for job in found.values() if not job.status.final}
        if unfinished:
            await self._wait_for(unfinished, set(ids))
        return [self._ended(job_id, found.get(job_id)) for job_id in ids]

    def _ended(self, job_id: str, job: Job | None) -> EndedChild:
        """Return how a child ended. The handler gets its result open; the text of a sealed error
        only if what this job stores is sealed as well: errors are told on by themselves.
        """
        context = self._context
        if job is not None and job.error == SEALED_ERROR and context.sealed:
            job.opener = context.sealing
            job.error = job.error_message
        elif job is not None and is_sealed(job.result_json):
            task = context.tasks.get(job.task)
            # Another job may return what only looks so.
            if key_of_args(job.args_json) is not None or (task is not None and task.encrypted):
                job.result_json = context.sealing.open_result(job.id, job.result_json or b"")
        return _ended(job_id, job)

    async def _wait_for(self, unfinished: dict[str, Job], wanted: set[str]) -> None:
        first = next(iter(unfinished.values()))
        if first.parent != self._context.job_id:
            raise InvalidInput(
                f"job {first.id} is not a child of this job; gather what spawn has returned"
            )
        group = next((each for each in self._groups if each.name == first.group), None)
        others = [] if group is None else [each for each in group.ids if each not in wanted]
        left = 0
        if others:
            # Only some of a group: resume when at most the others are unfinished.
            left = sum(1 for job in (await self._read(others)).values() if not job.status.final)
        self._suspend(first.group, left)

    def _groups_of(self, ids: list[str]) -> list[Group]:
        wanted = set(ids)
        return [group for group in self._groups if not wanted.isdisjoint(group.ids)]

    def _suspend(self, group: str | None, left: int) -> None:
        self._context.suspend(LONGEST_DELAY, (AwaitedChildren(group, left),))

    async def _read(self, ids: list[str]) -> dict[str, Job]:
        context = self._context
        found: dict[str, Job] = {}
        for start in range(0, len(ids), MOST_JOBS):
            rest = ids[start : start + MOST_JOBS]
            while rest:
                part = functools.partial(context.engine.get_part, rest, PART_BYTES)
                jobs, rest = await context.retry_while_unavailable(part)
                found.update((job.id, job) for job in jobs)
        return found

    async def _refuse_to_wait_for_itself(self, group: Group) -> None:
        context = self._context
        [job] = await context.retry_while_unavailable(
            functools.partial(context.engine.get, [context.job_id])
        )
        if job.hold:
            raise InvalidInput(
                f"children {group.name!r} are in lane {job.lane!r} of queue {job.queue!r}, where "
                "this job keeps its place while it waits for them; give them another lane, or "
                'this one on_retry="yield"'
            )

    def _child(
        self, job: NewJob, child_id: str, entry_name: str, meta: dict[str, object]
    ) -> NewJob:
        inherited = job.meta
        if meta:
            own = msgspec.json.decode(job.meta) if job.meta else {}
            inherited = msgspec.json.encode({**meta, **own})
        if key_of_args(job.args) is not None:
            # They were sealed for the id that it was made with.
            job = self._context.sealing.with_id(job, child_id)
        return msgspec.structs.replace(
            job, id=child_id, parent=self._context.job_id, group=entry_name, meta=inherited
        )

    async def _write(self, entry_name: str, record: ChildrenRecord) -> None:
        await self._context.write(entry=Entry(CHILDREN, entry_name, msgspec.json.encode(record)))


def _ended(job_id: str, job: Job | None) -> EndedChild:
    if job is None:
        return EndedChild(job_id=job_id, task="?", status=GONE, error="it was deleted")
    if job.status is Status.COMPLETED:
        return EndedChild(
            job_id=job_id,
            task=job.task,
            status=job.status.value,
            result=msgspec.Raw(job.result_json or b"null"),
        )
    return EndedChild(
        job_id=job_id,
        task=job.task,
        status=job.status.value,
        error_type=job.error_type,
        error=job.error,
    )
