"""What `headrace top` shows, taken at one moment, and what happened between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.app import App
from headrace.cli.backend import outcomes, running_now, time_now
from headrace.model.limits.rate import RateView
from headrace.model.views import Finding, LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.running import RunningJobs

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

MOST_LANES = 50
COMPLETED = "completed"
# What ends a job for good, or an attempt of it, and is no success.
FAILURES = ("failed", "timeout", "retry", "lost")

Outcomes = Mapping[str, Mapping[str, int]]


class Picture(msgspec.Struct, kw_only=True, frozen=True):
    """Queues, running jobs, lanes, rates and workers. `outcomes` are counts of attempts, by
    worker.
    """

    at: datetime
    running: RunningJobs
    queues: Sequence[QueueView]
    lanes: Sequence[LaneView]
    workers: Sequence[Worker]
    outcomes: Outcomes
    findings: Sequence[Finding] = ()
    rates: Sequence[RateView] = ()

    def to_dict(self, throughput: Throughput | None) -> dict[str, Any]:
        """The shape of `headrace top --json`."""
        return {
            "at": self.at,
            "queues": self.queues,
            "running": [
                {
                    "job_id": job.id,
                    "task": job.task,
                    "queue": job.queue,
                    "lane": job.lane,
                    "stage": job.stage,
                    "progress": job.progress,
                    "message": job.message,
                    "attempt": job.attempt,
                    "worker": job.worker,
                    "started_at": job.started_at,
                    "elapsed_seconds": round(self.running.elapsed(job), 3),
                }
                for job in self.running.jobs
            ],
            "lanes": self.lanes,
            "rates": self.rates,
            "workers": self.workers,
            "throughput": throughput,
            "findings": self.findings,
        }


class Throughput(msgspec.Struct, kw_only=True, frozen=True):
    """Attempts that ended in a second, over so many seconds."""

    seconds: float
    completed_per_second: float
    failed_per_second: float


async def take_picture(backend: Backend) -> Picture:
    """Return how things are now."""
    queues = await backend.queues()
    return Picture(
        running=await running_now(backend, queues),
        queues=sorted(queues, key=lambda each: (-_depth(each), each.name)),
        lanes=await backend.lanes(queue=None, lane=None, limit=MOST_LANES),
        workers=await backend.workers(),
        outcomes=await outcomes(backend),
        at=time_now(backend),
        findings=await findings(backend),
        rates=await rates(backend),
    )


async def rates(backend: Backend) -> Sequence[RateView]:
    """Return rates and holds, those for which the most jobs wait first; none where a server of an
    earlier version knows of none.
    """
    if isinstance(backend, App):
        found = await backend.rates(limit=MOST_LANES)
    else:
        from headrace.client import NotFound  # noqa: PLC0415 - only for a server

        try:
            found = await backend.rates(limit=MOST_LANES)
        except NotFound:
            return ()
    return sorted(found, key=lambda each: (each.held_until is None, -(each.waiting or 0)))


async def findings(backend: Backend) -> Sequence[Finding]:
    """Return what is wrong; nothing where a server of an earlier version does not say."""
    if isinstance(backend, App):
        return (await backend.summary()).findings
    from headrace.client import NotFound  # noqa: PLC0415 - only for a server

    try:
        return (await backend.summary()).findings
    except NotFound:
        return ()


def throughput(before: Picture, after: Picture) -> Throughput | None:
    """What ended between two pictures. Workers that came or went count for what is known."""
    seconds = (after.at - before.at).total_seconds()
    if seconds <= 0:
        return None
    completed = failed = 0
    for worker, counts in after.outcomes.items():
        known = before.outcomes.get(worker, {})
        for outcome, count in counts.items():
            # Fewer than before: it has started again, and counts from the beginning.
            new = max(count - known.get(outcome, 0), 0)
            completed += new if outcome == COMPLETED else 0
            failed += new if outcome in FAILURES else 0
    return Throughput(
        seconds=round(seconds, 3),
        completed_per_second=round(completed / seconds, 1),
        failed_per_second=round(failed / seconds, 1),
    )


def _depth(queue: QueueView) -> int:
    return queue.running + queue.ready + queue.waiting
