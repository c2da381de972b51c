"""Rows and jobs agree: what the row of a scan says follows from the job of its run.

Steps write `running` and `completed`. That a run has failed, was cancelled or runs again is written
here: when somebody looks, by `scanner.settle` after a step has failed, and every five minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time

from headrace import Job, JobNotFound, Status
from headrace_scanner.service import ScannerService
from headrace_scanner.store.records import Scan, ScanStatus

# A worker that dies at the very end is noticed within its lease; later nothing changes any more.
SETTLED_SECONDS = 3600.0
AT_ONCE = 8
MOST = 500
DAY = 86_400.0
NO_JOB = "Its job is no longer there."


class Agreement:
    """Brings the rows of scans into line with the jobs of their runs."""

    def __init__(self, service: ScannerService) -> None:
        self._service = service

    async def settle_all(self) -> int:
        """Settle scans that are not over and those that ended just now, and delete old ones; return
        how many rows changed.
        """
        scans = self._service.scans
        rows, _ = await scans.page(status=ScanStatus.RUNNING, limit=MOST)
        ended, _ = await scans.page(updated_after=time() - SETTLED_SECONDS, limit=MOST)
        rows += [each for each in ended if each.status is not ScanStatus.RUNNING]
        settled = await self.all_settled(rows)
        if self._service.settings.keep_days:
            await scans.prune(time() - self._service.settings.keep_days * DAY)
        return sum(before.status != now.status for before, now in zip(rows, settled, strict=True))

    async def settle_one(self, scan_id: str) -> bool:
        """Settle one scan; return whether its run had ended, so that its row says so now."""
        # Before the row is settled: a run that ends after that look is seen by the next one.
        job = await self._job(scan_id)
        row = await self._service.scans.get(scan_id)
        if row is not None:
            await self.settled(row)
        return job is None or job.status.final

    async def all_settled(self, rows: Sequence[Scan]) -> list[Scan]:
        """Return rows as they should be, and write those that are not."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(row: Scan) -> Scan:
            async with gate:
                return await self.settled(row)

        return list(await asyncio.gather(*(one(row) for row in rows)))

    async def settled(self, row: Scan) -> Scan:
        """Return a row as it should be by the job of its run, and write it if it is not."""
        scans = self._service.scans
        job = await self._job(row.scan_id)
        if job is None:
            if row.status is ScanStatus.RUNNING:
                await scans.fail(row.scan_id, NO_JOB)
                return await scans.get(row.scan_id) or row
            return row
        if job.status.final:
            # Between our two looks the run may have ended.
            row = await scans.get(row.scan_id) or row
            if job.status is Status.COMPLETED or row.status is ScanStatus.FAILED:
                return row
            await scans.fail(row.scan_id, reason_of(job))
            return await scans.get(row.scan_id) or row
        # A run that was begun again takes its row along with its next step.
        return row

    async def _job(self, scan_id: str) -> Job | None:
        try:
            return await self._service.app.get(scan_id)
        except JobNotFound:
            return None


def reason_of(job: Job) -> str:
    """Return why a run ended, in one sentence."""
    if job.status is Status.CANCELLED:
        return f"It was cancelled: {job.error}" if job.error else "It was cancelled."
    return job.error or "It failed."
