"""The verbs of an App for many jobs: list, count, search, bulk actions; and copies of a job."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headrace.admin.results import ResultVerbs
from headrace.errors import InvalidSetting
from headrace.model.ids import parse_id
from headrace.model.job import Job, JobFilter, NewJob
from headrace.model.views import JobCount, JobPage

# Only those who use them pay for these imports.
if TYPE_CHECKING:
    from headrace.api_types.bulk import BulkAction, BulkAnswer, BulkView

MOST_LISTED = 1_000


class JobVerbs(ResultVerbs):
    """Many jobs."""

    @abstractmethod
    async def rerun(self, jobs: Sequence[Job], *, queues: Collection[str] = ()) -> Sequence[str]:
        """Run jobs again, and return the ids of those that were moved."""

    @abstractmethod
    def job(self, name: str, args: Mapping[str, Any] | None = None, **options: Any) -> NewJob:
        """Make a job without storing it."""

    @abstractmethod
    async def enqueue_job(self, job: NewJob, *, connection: Any = None) -> Job:
        """Store one job."""

    async def list(
        self,
        filter: JobFilter | None = None,
        *,
        cursor: str | None = None,
        limit: int = 50,
        brief: bool = False,
        fingerprint: str | None = None,
        search: Sequence[str] = (),
    ) -> JobPage:
        """A page of jobs, newest first; `brief` without arguments, result, meta and attempts.

        `search` are texts that all have to occur in a job, or `args.name=value`. It looks for about
        a second: a page may be short, and its cursor is where to go on. `fingerprint` likewise.
        """
        await self.open()
        if not 1 <= limit <= MOST_LISTED:
            raise InvalidSetting(f"limit must be between 1 and {MOST_LISTED}, got {limit}")
        wanted = filter or JobFilter()
        after = None if cursor is None else parse_id(cursor)
        if fingerprint is None and not search:
            page = await self._engine.list_jobs(wanted, cursor=after, limit=limit, brief=brief)
        else:
            from headrace.monitor.search import find  # noqa: PLC0415

            page = await find(
                self._engine, wanted, search, fingerprint, cursor=after, limit=limit, brief=brief
            )
        for job in page.jobs:
            self._openable(job)
        return page

    async def count(
        self, filter: JobFilter | None = None, *, fingerprint: str | None = None
    ) -> JobCount:
        """Count the jobs that match among the newest 10,000 of the statuses asked for."""
        from headrace.monitor.search import count  # noqa: PLC0415

        await self.open()
        return await count(self._engine, filter or JobFilter(), fingerprint)

    async def copy(self, job_id: str, args: Mapping[str, Any] | None = None, **options: Any) -> Job:
        """Enqueue a new job with the task and the arguments of another, some of which may differ.
        Queue and priority are those of the other, the options those of `task.options(…)`.
        """
        job = await self.get(job_id)
        options = {"queue": job.queue, "priority": job.priority, **options}
        options["meta"] = dict(options.get("meta") or {}) | {"copy_of": job.id}
        return await self.enqueue_job(self.job(job.task, job.args | dict(args or {}), **options))

    # -- bulk actions --------------------------------------------------------------------------

    async def bulk(
        self,
        action: BulkAction,
        filter: JobFilter,
        *,
        fingerprint: str | None = None,
        cutoff: datetime | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> BulkAnswer:
        """Cancel or retry every job that matches and was made before `cutoff`, a time that is now
        by default. With `dry_run` only count them, by task, queue and error, up to 10,000.

        Without a status, `cancel` takes unfinished jobs, and `retry` failed and timed-out ones.
        """
        from headrace.admin import bulk  # noqa: PLC0415

        await self.open()
        if dry_run:
            return await bulk.preview(
                self._engine, action, filter, fingerprint, cutoff=cutoff, on_progress=on_progress
            )
        return await bulk.apply(
            self,
            action,
            filter,
            fingerprint,
            cutoff=cutoff,
            reason=reason,
            on_progress=on_progress,
        )

    async def start_bulk(
        self,
        action: BulkAction,
        filter: JobFilter,
        *,
        fingerprint: str | None = None,
        cutoff: datetime | None = None,
        reason: str | None = None,
        who: str = "app",
        key_id: str | None = None,
        user: str | None = None,
        runs: bool = True,
        queues: Collection[str] = (),
    ) -> BulkView:
        """The same in the background: a server does it, goes on after a crash, and can be asked
        how far it is. `who` is for the audit log. Without `runs` it leaves runs of workflows alone,
        and with `queues` those that use others.
        """
        from headrace.admin import bulk  # noqa: PLC0415

        await self.open()
        cutoff = await bulk.checked_cutoff(self._engine, cutoff)
        record = bulk.BulkRecord(
            action=action,
            filter=filter,
            fingerprint=fingerprint,
            cutoff=cutoff,
            reason=reason,
            who=who,
            key_id=key_id,
            user=user,
            runs=runs,
            queues=sorted(queues),
            made_at=self.clock.utcnow(),
        )
        return await bulk.start(self._engine, record)

    async def bulk_actions(self) -> Sequence[BulkView]:
        """Return the actions that servers do or have done, the newest first."""
        from headrace.admin import bulk  # noqa: PLC0415

        await self.open()
        records = await bulk.all_records(self._engine)
        return [bulk.decode(record).view(record.key) for record in reversed(records)]

    async def bulk_action(self, bulk_id: str) -> BulkView:
        """Return one of them, with how far it is."""
        from headrace.admin import bulk  # noqa: PLC0415

        await self.open()
        record, _ = await bulk.find(self._engine, bulk_id)
        return record.view(parse_id(bulk_id))

    async def stop_bulk(self, bulk_id: str) -> BulkView:
        """Stop one. Up to 500 jobs that it is changing at this moment may still be changed."""
        from headrace.admin import bulk  # noqa: PLC0415

        await self.open()
        return await bulk.stop(self._engine, bulk_id)

    async def resume_bulk(self, bulk_id: str) -> BulkView:
        """Let a server go on with one that was stopped, or has failed."""
        from headrace.admin import bulk  # noqa: PLC0415

        await self.open()
        return await bulk.resume(self._engine, bulk_id)
