"""What becomes of a job whose worker is gone, and the loop that gives it to another."""

from __future__ import annotations

import logging
from datetime import datetime

import msgspec

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.job_tree import cancel_children
from headrace.loops.loop import around
from headrace.model.lease import sweep_pause
from headrace.model.outcome import (
    AttemptEntry,
    Cancelled,
    Failed,
    Failure,
    Outcome,
    Retry,
    Settlement,
    TimedOut,
)
from headrace.model.views import LostJob
from headrace.upkeep.job_loops import EngineLoop

log = logging.getLogger("headrace.sweep")

INTERRUPTED = "interrupted"
BATCH = 200


def outcome_of_lost(lost: LostJob) -> Outcome:
    """Decide for one lost job.

    A job that kills its workers uses up its attempts like any other and is then set aside.
    """
    job = lost.job
    if job.cancel_requested:
        return Cancelled("cancelled; its worker was lost before it could stop")
    last = job.attempt >= job.max_attempts
    if job.timeout is not None and lost.age > job.timeout:
        failure = Failure(
            "TimedOut",
            f"attempt {job.attempt} of {job.max_attempts} did not finish within "
            f"{job.timeout:g} s, and its worker {lost.worker!r} was lost",
        )
        # `on_crash="fail"` means: never again after a crash, also when time ran out meanwhile.
        return TimedOut(failure) if last or job.on_crash == "fail" else Retry(failure, 0.0)
    if job.on_crash == "fail":
        return Failed(Failure(INTERRUPTED, f"{INTERRUPTED}: worker {lost.worker!r} was lost"))
    failure = Failure(
        "WorkerLost",
        f"worker {lost.worker!r} was lost during attempt {job.attempt} of {job.max_attempts}",
    )
    return Failed(failure) if last else Retry(failure, 0.0)


def settlement_of_lost(lost: LostJob, *, now: datetime) -> Settlement:
    """The outcome with its line for the job's attempt log."""
    outcome = outcome_of_lost(lost)
    failure: Failure | None = getattr(outcome, "failure", None)
    entry = AttemptEntry(
        attempt=lost.job.attempt,
        token=lost.job.token,
        outcome=_NAMES[type(outcome)],
        worker=lost.worker,
        ended_at=now,
        started_at=lost.started_at,
        failure=failure,
    )
    return Settlement(lost.job.id, lost.job.token, outcome, msgspec.json.encode(entry))


_NAMES: dict[type, str] = {
    Retry: "retry",
    TimedOut: "timeout",
    Failed: "failed",
    Cancelled: "cancelled",
}
# What becomes of the job, for the log.
_WORDS: dict[type, str] = {
    Retry: "it is tried again",
    TimedOut: "it is out of time",
    Failed: "it has failed",
    Cancelled: "it is cancelled",
}


class Sweep(EngineLoop):
    """Settles what dead workers hold, so that another takes over or the job ends."""

    name = "sweep"

    def __init__(self, *, engine: Engine, clock: Clock, lease_seconds: float) -> None:
        super().__init__(engine=engine)
        self.clock = clock
        self.pause = sweep_pause(lease_seconds)

    async def tick(self) -> float:
        """Settle one batch. Several sweeps may race: tokens let one outcome count."""
        lost = await self.engine.take_lost(BATCH)
        if lost:
            now = self.clock.utcnow()
            settlements = [settlement_of_lost(job, now=now) for job in lost]
            answer = await self.engine.exchange(settlements)
            refused = set(answer.refused)
            await self._tell(lost, settlements)
            for job, settlement in zip(lost, settlements, strict=True):
                if job.job.id not in refused:
                    log.warning(
                        "Worker %r lost job %s (%s, attempt %d of %d): %s",
                        job.worker,
                        job.job.id,
                        job.job.task,
                        job.job.attempt,
                        job.job.max_attempts,
                        _WORDS[type(settlement.outcome)],
                    )
        return 0.0 if len(lost) == BATCH else around(self.pause)

    async def _tell(self, lost: list[LostJob], settlements: list[Settlement]) -> None:
        """Wake parents that may have waited for one of these, and reach children of cancelled
        ones.
        """
        parents = {each.job.parent for each in lost if each.job.parent is not None}
        if parents:
            await self.engine.wake(list(parents))
        await cancel_children(
            self.engine, [each.job_id for each in settlements if type(each.outcome) is Cancelled]
        )
