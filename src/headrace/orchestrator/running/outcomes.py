"""What the end of an attempt means for its job. No I/O: values in, outcome out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.errors import (
    InvalidArguments,
    NotRetryable,
    RateLimited,
    Snooze,
    Suspended,
)
from headrace.model.job import ClaimedJob
from headrace.model.outcome import (
    MESSAGE_LIMIT,
    Cancelled,
    Failed,
    Failure,
    Outcome,
    Retry,
    Snoozed,
    TimedOut,
)
from headrace.model.policy import TaskPolicy
from headrace.model.retry import bounded_delay, delay_after
from headrace.orchestrator.running.attempt import Reason
from headrace.orchestrator.settling.attempt_log import describe_failure, shorten

DEFAULT_POLICY = TaskPolicy()


def outcome_of_error(
    job: ClaimedJob, policy: TaskPolicy, error: BaseException, *, now: float
) -> Outcome:
    """Return the outcome of a raised error. `now` is what `RetryLater(at=…)` counts from."""
    match merge_suspensions(error):
        case Suspended() as suspended:
            return Snoozed(bounded_delay(suspended.delay), suspended.awaits)
        case Snooze() as error:
            return Snoozed(bounded_delay(error.delay))
    failure = describe_failure(error)
    hold = 0.0
    if isinstance(error, RateLimited) and error.key:
        hold = bounded_delay(error.delay or 0.0)
    breaker = None if policy.lane is None else policy.lane.breaker
    counts = breaker is None or breaker.counts(error)
    if job.attempt >= job.max_attempts:
        return Failed(failure, hold, counts)
    delay = delay_after(error, policy.retry, job.attempt, never_retry=policy.never_retry, now=now)
    return Failed(failure, hold, counts) if delay is None else Retry(failure, delay, hold, counts)


def outcome_of_fault(job: ClaimedJob, error: BaseException | None, fault: BaseException) -> Outcome:
    """Return the outcome of an attempt whose `error` could not be handled, because that raised
    `fault`. The attempt counts, or its job would run for ever.
    """
    broke = describe_failure(fault)
    if error is None:
        failure = broke
    else:
        first = describe_failure(error)
        message = shorten(f"{broke.type}: {broke.message}, while looking at: ", MESSAGE_LIMIT // 2)
        failure = Failure(
            first.type, shorten(message + first.message, MESSAGE_LIMIT), first.traceback
        )
    if job.attempt < job.max_attempts:
        return Retry(failure, DEFAULT_POLICY.retry.delay(job.attempt))
    return Failed(failure)


def outcome_of_interruption(job: ClaimedJob, policy: TaskPolicy, reason: Reason) -> Outcome | None:
    """Return the outcome of a stopped attempt; None if its lease is lost."""
    last = job.attempt >= job.max_attempts
    match reason:
        case Reason.LOST:
            return None
        case Reason.CANCELLED:
            return Cancelled("cancelled while it ran")
        case Reason.TIMEOUT:
            failure = Failure(
                "TimedOut",
                f"attempt {job.attempt} of {job.max_attempts} did not finish within "
                f"{job.timeout or 0:g} s",
            )
            delay = delay_after(
                TimeoutError(), policy.retry, job.attempt, never_retry=policy.never_retry
            )
            return TimedOut(failure) if last or delay is None else Retry(failure, delay)
        case Reason.STOPPED:
            failure = Failure(
                "WorkerStopped",
                f"the worker stopped during attempt {job.attempt} of {job.max_attempts}, "
                "and the handler did not finish within the grace time",
            )
            return _not_counted(failure, last=last or job.on_crash == "fail")


def outcome_of_silence(job: ClaimedJob) -> Outcome:
    """Return the outcome of an attempt that ended without one, by a fault of the worker. It counts,
    or a job that breaks its workers would run for ever.
    """
    failure = Failure(
        "WorkerLost",
        f"attempt {job.attempt} of {job.max_attempts} ended without an outcome; see the worker's "
        "log",
    )
    last = job.attempt >= job.max_attempts
    return _not_counted(failure, last=last or job.on_crash == "fail")


def _not_counted(failure: Failure, *, last: bool) -> Outcome:
    """Return a failure of the worker, of which a circuit breaker of the task takes no notice."""
    return Failed(failure, counts=False) if last else Retry(failure, 0.0, counts=False)


def outcome_of_caught_suspension(job: ClaimedJob) -> Outcome:
    """Return the outcome of a handler that swallowed `Suspended` and returned."""
    return Failed(describe_failure(caught_suspension(job.task)))


def caught_suspension(task: str) -> NotRetryable:
    """Return the error for a handler that swallows `Suspended`."""
    return NotRetryable(
        f'task "{task}" caught headrace.Suspended, which leaves the handler while the job sleeps '
        "or waits; catch Exception instead of BaseException, or raise it again"
    )


def outcome_of_bad_arguments(job: ClaimedJob, error: Exception) -> Outcome:
    """Return the outcome of arguments that do not fit the handler. A retry cannot help."""
    shown = job.args[:200].decode("utf-8", "replace") + ("…" if len(job.args) > 200 else "")
    return Failed(
        describe_failure(
            InvalidArguments(
                f'job {job.id}: the arguments no longer fit task "{job.task}": {error}; '
                f"got {shown}; enqueue it again with arguments that fit"
            )
        ),
        counts=False,
    )


def merge_suspensions(error: BaseException) -> BaseException:
    """Return one suspension for an error group that consists of suspensions only: the earliest to
    be over counts. Return any other error as it is.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    _, others = error.split(Suspended)
    if others is not None:
        return error
    suspended: list[Suspended] = list(_leaves(error))
    awaits = tuple(dict.fromkeys(each for one in suspended for each in one.awaits))
    return Suspended(min(one.delay for one in suspended), awaits)


def _leaves(error: BaseException) -> Iterator[Any]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
