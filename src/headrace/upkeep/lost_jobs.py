"""What becomes of a job whose worker is gone. Pure: no engine, no clock."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace.model.job import LostJob
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

INTERRUPTED = "interrupted"


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
    failure: Failure | None = None
    match outcome:
        case Retry(failure=failure):
            shown = "retry"
        case TimedOut(failure=failure):
            shown = "timeout"
        case Failed(failure=failure):
            shown = "failed"
        case _:
            shown = "cancelled"
    entry = AttemptEntry(
        attempt=lost.job.attempt,
        token=lost.job.token,
        outcome=shown,
        worker=lost.worker,
        ended_at=now,
        started_at=lost.started_at,
        failure=failure,
    )
    return Settlement(lost.job.id, lost.job.token, outcome, msgspec.json.encode(entry))
