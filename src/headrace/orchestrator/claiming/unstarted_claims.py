"""Claimed jobs that have not started: they are given to slots, or back to their queues."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from headrace.model.job import ClaimedJob
from headrace.model.outcome import RELEASED, Outcome, Settlement
from headrace.orchestrator.claiming.breakers import WorkerBreakers
from headrace.orchestrator.claiming.chunks import ChunkCollector
from headrace.orchestrator.claiming.exchange_loop import ExchangeLoop
from headrace.orchestrator.claiming.prefetch import JobRunner, UnstartedJobs
from headrace.orchestrator.running.attempt import monotonic

log = logging.getLogger("headrace.worker")


class UnstartedClaims(ExchangeLoop):
    """What the dispatcher does with jobs between their claim and their start."""

    unstarted: UnstartedJobs
    chunks: ChunkCollector
    breakers: WorkerBreakers
    runner: JobRunner
    held: dict[str, int]
    draining: bool

    def finished(self, job: ClaimedJob, settlement: Settlement | None, now: float) -> None:
        """Take the outcome of an attempt, or of a job that is given back."""
        raise NotImplementedError

    def release_unstarted(self, count: int) -> None:
        """Return this many unstarted jobs to their queues, the oldest first."""
        self._release(self.unstarted.take_back(count, self.runner.take_back_offered))

    def _release(
        self, jobs: Iterable[ClaimedJob], outcome: Outcome = RELEASED, now: float = 0.0
    ) -> None:
        for job in jobs:
            self.telemetry.released += 1
            self.finished(job, Settlement(job.id, job.token, outcome), now)

    def give_back_unstarted(self) -> None:
        """Release all that have not started, but for those that breakers have set aside."""
        self.release_unstarted(self.unstarted.ages.count)
        self._release(self.chunks.take_all())

    def _release_all(self) -> None:
        self.give_back_unstarted()
        self._release(self.breakers.take_all())

    def lose(self, ids: Sequence[str], stop: Callable[[str, int], None]) -> None:
        """Of several stores one has given these jobs to others: stop those that run."""
        if ids:
            log.error("%d jobs of a store that was away are lost to this worker", len(ids))
            self.give_back_unstarted()
        for job_id in ids:
            stop(job_id, self.held.get(job_id, 0))

    def give_back(self, jobs: Iterable[ClaimedJob]) -> None:
        """Release jobs that breakers have set aside."""
        self._release(jobs)

    def take_in(self, jobs: Sequence[ClaimedJob]) -> None:
        """Start jobs that breakers have set aside, as far as they are still ours."""
        ours = [job for job in jobs if self.held.get(job.id) == job.token and not self.draining]
        self._release([job for job in jobs if job not in ours])
        if self.chunks.names:
            ours = self.chunks.collect(ours)
        self.unstarted.put(ours, monotonic())
        self.runner.fill()
