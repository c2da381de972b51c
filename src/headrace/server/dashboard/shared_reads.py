"""What several pages read, once for all who look."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from headrace.api_types.bulk import BulkView
from headrace.api_types.job import JobBody
from headrace.api_types.monitoring import ErrorGroups
from headrace.model.job import JobFilter
from headrace.model.views import JobCount
from headrace.monitor.cached_reads import CachedReads
from headrace.monitor.errors import error_groups, hide
from headrace.monitor.search import count
from headrace.server.dashboard.visit import Visit
from headrace.server.service import Service

ERRORS_SECONDS = 2.0
# Groups are made of thousands of jobs: nobody waits for newer ones.
ERRORS_MEANWHILE = 10.0
BULK_SECONDS = 1.0
COUNT_SECONDS = 1.0
SAMPLE_SECONDS = 5.0
# The end of a traceback says where it failed.
TRACEBACK_CHARACTERS = 16_384


class FailureSample(msgspec.Struct, frozen=True):
    """How a job of a group failed, without hidden values."""

    job_id: str
    queue: str
    attempt: int
    worker: str | None = None
    message: str = ""
    traceback: str = ""
    cut: bool = False


class SharedReads:
    """One of each server: `service.part(SharedReads)`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._errors: CachedReads[ErrorGroups] = CachedReads(
            ERRORS_SECONDS, meanwhile=ERRORS_MEANWHILE
        )
        self._bulk: CachedReads[Sequence[BulkView]] = CachedReads(BULK_SECONDS)
        self._counts: CachedReads[JobCount] = CachedReads(COUNT_SECONDS)
        self._samples: CachedReads[FailureSample | None] = CachedReads(SAMPLE_SECONDS)

    def forget(self) -> None:
        """Read everything anew for the next who looks."""
        for each in (self._errors, self._bulk, self._counts, self._samples):
            each.forget()

    async def errors(self, visit: Visit, wanted: JobFilter, *, moving: bool = False) -> ErrorGroups:
        """Return failures in groups, without hidden values. The filter has to be what the caller
        may see. `moving`: its time begins later each minute, and nobody waits for that.
        """
        key = msgspec.structs.replace(wanted, finished_after=None) if moving else wanted

        async def read(*, gently: bool = False) -> ErrorGroups:
            app = self._service.app
            await app.open()
            found = await error_groups(
                app.engine, wanted, visible=visit.reach.visible, gently=gently
            )
            return await hide(app.engine, found, self._service.answers.error)

        return await self._errors.get(
            (key, moving, visit.caller.queues), read, partial(read, gently=True)
        )

    async def count(self, visit: Visit, wanted: JobFilter, fingerprint: str | None) -> JobCount:
        """Return how many jobs match, among the newest. The filter has to be what the caller may
        see. By status alone it is always new; for other filters a second old.
        """
        app, seen = self._service.app, visit.reach.seen
        if fingerprint is None and wanted == JobFilter(statuses=wanted.statuses):
            return await app.engine.count_jobs(wanted)
        return await self._counts.get(
            (wanted, fingerprint, visit.caller.queues),
            lambda: count(app.engine, wanted, fingerprint, seen=seen),
        )

    async def bulk(self) -> Sequence[BulkView]:
        """Return all bulk actions; who may see which is for the page to say."""
        return await self._bulk.get((), self._service.app.bulk_actions)

    async def sample(self, job_id: str) -> FailureSample | None:
        """Return how a job failed, or None if it is gone or has been run again since."""

        async def read() -> FailureSample | None:
            app = self._service.app
            await app.open()
            jobs = await app.engine.get([job_id])
            found = [job for job in jobs if job.error_type is not None]
            return _sample(self._service.answers.job(found[0])) if found else None

        return await self._samples.get(job_id, read)


def _sample(job: JobBody) -> FailureSample:
    last = next((each for each in reversed(job.log) if each.failure is not None), None)
    trace = (last.failure.traceback or "") if last and last.failure else ""
    return FailureSample(
        job_id=job.id,
        queue=job.queue,
        attempt=last.attempt if last else job.attempt,
        worker=last.worker if last else job.worker,
        message=(job.error or "")[:TRACEBACK_CHARACTERS],
        traceback=trace[-TRACEBACK_CHARACTERS:],
        cut=len(trace) > TRACEBACK_CHARACTERS,
    )
