"""Rows and jobs agree: the row is the truth about a run, and what it says follows from its job.

Each write of an attempt carries its token. What a kill leaves between two writes is put right here:
when somebody looks, by `spots.settle` after a failure, and every five minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from time import time

from headrace import Job, JobConflict, JobNotFound, Status
from headrace_spots.service import SpotsService
from headrace_spots.store.records import FINAL, RunStatus, Snapshot

# So long after its row a job may still come; then whoever wanted to enqueue it has died.
GRACE_SECONDS = 60.0
# A worker that dies at the very end is noticed within its lease; later nothing changes any more.
SETTLED_SECONDS = 3600.0
AT_ONCE = 8
NEVER_CAME = "Its job never came: the server was stopped in between. Ask for it again."
UNFINISHED = tuple(each for each in RunStatus if not each.final)


class Agreement:
    """Brings rows into line with their jobs."""

    def __init__(self, service: SpotsService) -> None:
        self._service = service

    async def settle_all(self, limit: int = 500) -> int:
        """Bring the rows of unfinished runs, and of those that ended just now, into line with their
        jobs; return how many changed.
        """
        repository = self._service.repository
        rows, _ = await repository.runs(statuses=UNFINISHED, limit=limit)
        ended, _ = await repository.runs(
            statuses=FINAL, updated_after=time() - SETTLED_SECONDS, limit=limit
        )
        rows += ended
        settled = await self.all_reconciled(rows, even_final=True)
        return sum(before.status != now.status for before, now in zip(rows, settled, strict=True))

    async def reconciled(self, row: Snapshot) -> Snapshot:
        """Return a row as it should be by the state of its job, and write it if it is not.

        A job that failed, was cancelled or ran out of time has a row that failed. A row whose job
        never came fails after a minute. A job that is run again takes its row along.
        """
        repository = self._service.repository
        job = await self.job(row.run_id)
        if job is None:
            if row.status.final or _age(row) < GRACE_SECONDS:
                return row
            await repository.fail(row.run_id, row.token, NEVER_CAME)
        elif job.status.final:
            # Between our two looks the attempt may have ended.
            row = await repository.get(row.run_id) or row
            agreed = RunStatus.COMPLETED if job.status == Status.COMPLETED else RunStatus.FAILED
            if row.status == agreed:
                return row
            token = max(row.token, job.token)
            lost = row.status == RunStatus.COMPLETED and job.status != Status.CANCELLED
            if lost and job.token == row.token:
                # All was stored, and that attempt was killed before it could say so. Once: an
                # attempt that only has to say so and fails, too, would fail for ever.
                with contextlib.suppress(JobConflict, JobNotFound):
                    await self._service.app.retry(row.run_id)
                return row
            await repository.fail(row.run_id, token, reason_of(job), even_completed=True)
        elif row.status == RunStatus.FAILED and _runs_again(job, row):
            await repository.begin(row.run_id, max(row.token, job.token))
        else:
            return row
        return await repository.get(row.run_id) or row

    async def all_reconciled(
        self, rows: Sequence[Snapshot], *, even_final: bool = False
    ) -> list[Snapshot]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(row: Snapshot) -> Snapshot:
            if row.status.final and not even_final:
                return row
            async with gate:
                return await self.reconciled(row)

        return list(await asyncio.gather(*(one(row) for row in rows)))

    async def job(self, run_id: str) -> Job | None:
        try:
            return await self._service.app.get(run_id)
        except JobNotFound:
            return None


def reason_of(job: Job) -> str:
    """Return why a job ended, in one sentence."""
    if job.status == Status.CANCELLED:
        return f"It was cancelled: {job.error}" if job.error else "It was cancelled."
    if job.status == Status.TIMEOUT:
        return job.error or "It took too long."
    return job.error or "It failed."


def _runs_again(job: Job, row: Snapshot) -> bool:
    """Return whether somebody has retried a job that had failed. While it is running under the
    same token, it is the attempt that failed and has not said so yet.
    """
    return job.status != Status.RUNNING or job.token > row.token


def _age(row: Snapshot) -> float:
    return (datetime.now(UTC) - row.created_at).total_seconds()
