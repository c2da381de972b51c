"""What runs now, and how many jobs wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from headrace.api_types.responses import Running, RunningAnswer, RunningJob, RunningSummary
from headrace.engine.base import Viewing
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.model.views import QueueView
from headrace.monitor.paging import pages

FEW = 100
# What a step of a workflow has in its meta.
STEP = "step"
RUNNING = JobFilter(statuses=(Status.RUNNING,))


class RunningJobs(msgspec.Struct, frozen=True):
    """Running jobs, the longest first, and how many wait in each queue. `now` is epoch seconds."""

    jobs: Sequence[Job]
    queued: dict[str, int]
    now: float

    @classmethod
    def of(cls, jobs: Iterable[Job], queues: Iterable[QueueView], now: float) -> RunningJobs:
        """Sort the jobs, and count those that wait."""
        longest = sorted(jobs, key=lambda job: (job.started_at is None, job.started_at, job.id))
        return cls(longest, {each.name: each.waiting + each.ready for each in queues}, now)

    def answer(self) -> RunningAnswer:
        """Return the body of `GET /api/v2/jobs/running` and `headrace running --json`.

        Steps stand for their run, which is what its caller knows: once, however many run.
        """
        found: dict[str, RunningJob] = {}
        for job in self.jobs:
            meta = job.meta
            shown = job.parent if job.parent is not None and STEP in meta else job.id
            if shown not in found:
                found[shown] = RunningJob(
                    platform=job.queue,
                    job_id=shown,
                    workflow_id=meta.get("workflow_id"),
                    started_at=job.started_at,
                    elapsed_seconds=int(self.elapsed(job)),
                )
        running = list(found.values())
        summary = RunningSummary(running_count=len(running), queued_count=sum(self.queued.values()))
        return RunningAnswer(data=Running(running=running, queued=self.queued, summary=summary))

    def elapsed(self, job: Job) -> float:
        """Return for how many seconds a job has been running."""
        return 0.0 if job.started_at is None else max(self.now - job.started_at.timestamp(), 0.0)


async def running(
    engine: Viewing,
    now: float,
    *,
    queues: Collection[str] = (),
    depths: Sequence[QueueView] | None = None,
) -> RunningJobs:
    """Return what runs in all queues, or only in these. `depths` are theirs, if they are known."""
    wanted = msgspec.structs.replace(RUNNING, queues=tuple(sorted(queues)))
    jobs: list[Job] = []
    async for page in pages(engine, wanted, first=FEW):
        jobs += page
    if depths is None:
        depths = [each for each in await engine.queues() if not queues or each.name in queues]
    return RunningJobs.of(jobs, depths, now)
