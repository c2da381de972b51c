"""What runs now, and what waits: one function for the command line and the API."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from headrace.engine.base import Viewing
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.monitor.paging import pages

FEW = 100


class Running(msgspec.Struct, frozen=True):
    """Running jobs, the longest first, and how many wait in each queue. `now` is epoch seconds."""

    jobs: Sequence[Job]
    queued: dict[str, int]
    now: float

    def to_dict(self) -> dict[str, Any]:
        """The shape of `GET /api/v2/jobs/running` and `headrace running --json`."""
        return {
            "success": True,
            "data": {
                "running": [
                    {
                        "platform": job.queue,
                        "job_id": job.id,
                        "workflow_id": job.meta.get("workflow_id"),
                        "started_at": job.started_at,
                        "elapsed_seconds": round(self.elapsed(job), 3),
                    }
                    for job in self.jobs
                ],
                "queued": self.queued,
                "summary": {
                    "running_count": len(self.jobs),
                    "queued_count": sum(self.queued.values()),
                },
            },
        }

    def elapsed(self, job: Job) -> float:
        """For how many seconds a job has been running."""
        return 0.0 if job.started_at is None else max(self.now - job.started_at.timestamp(), 0.0)


async def running(engine: Viewing, now: float, *, queues: Collection[str] = ()) -> Running:
    """Look at all queues, or only at these."""
    wanted = JobFilter(statuses=(Status.RUNNING,), queues=tuple(sorted(queues)))
    jobs: list[Job] = []
    async for page in pages(engine, wanted, first=FEW):
        jobs += page
    jobs.sort(key=lambda job: (job.started_at is None, job.started_at, job.id))
    queued = {
        queue.name: queue.waiting + queue.ready
        for queue in await engine.queues()
        if not queues or queue.name in queues
    }
    return Running(jobs, queued, now)
