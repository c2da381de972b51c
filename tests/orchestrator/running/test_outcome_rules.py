"""What the end of an attempt means for its job."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.errors import (
    AuthenticationError,
    RetryLater,
    Snooze,
    ValidationError,
)
from headrace.model.outcome import (
    Cancelled,
    Failed,
    Outcome,
    Retry,
    Snoozed,
    TimedOut,
)
from headrace.model.policy import TaskPolicy
from headrace.model.retry import LONGEST_DELAY, RetryPolicy
from headrace.orchestrator.running.attempt import Reason
from headrace.orchestrator.running.outcomes import outcome_of_error, outcome_of_interruption
from tests.orchestrator.jobs import a_claimed_job


@pytest.mark.parametrize(
    ("error", "attempt", "outcome", "delay"),
    [
        (OSError("x"), 1, Retry, 5),
        (OSError("x"), 2, Retry, 10),
        (OSError("x"), 3, Retry, 20),
        (OSError("x"), 4, Failed, None),
        (ValidationError("x"), 1, Failed, None),
        (AuthenticationError("x"), 1, Failed, None),
        (LookupError("x"), 1, Failed, None),
        (asyncio.CancelledError("x"), 1, Retry, 5),
        (SystemExit(3), 1, Retry, 5),
        (RetryLater(), 2, Retry, 10),
        (RetryLater(delay=42), 1, Retry, 42),
        (RetryLater(delay=42), 4, Failed, None),
        (RetryLater(delay=-1), 1, Retry, 0),
        (RetryLater(delay=float("inf")), 1, Retry, LONGEST_DELAY),
        (RetryLater(at=datetime.fromtimestamp(1_030, UTC)), 1, Retry, 30),
        (RetryLater(at=datetime.fromtimestamp(0, UTC)), 1, Retry, 0),
        (Snooze(9), 4, Snoozed, 9),
        (Snooze(float("nan")), 1, Snoozed, 0),
    ],
)
def test_what_an_error_means(
    error: BaseException, attempt: int, outcome: type[Outcome], delay: float | None
) -> None:
    policy = TaskPolicy(never_retry=("LookupError",))
    decided = outcome_of_error(a_claimed_job(attempt=attempt), policy, error, now=1_000.0)
    assert type(decided) is outcome
    assert getattr(decided, "delay", None) == delay


@pytest.mark.parametrize(
    ("reason", "fields", "outcome"),
    [
        (Reason.LOST, {}, None),
        (Reason.CANCELLED, {}, Cancelled),
        (Reason.TIMEOUT, {}, Retry),
        (Reason.TIMEOUT, {"attempt": 4}, TimedOut),
        (Reason.STOPPED, {}, Retry),
        (Reason.STOPPED, {"attempt": 4}, Failed),
        (Reason.STOPPED, {"on_crash": "fail"}, Failed),
    ],
)
def test_what_an_interruption_means(
    reason: Reason, fields: dict[str, Any], outcome: type[Outcome] | None
) -> None:
    decided = outcome_of_interruption(a_claimed_job(**fields), TaskPolicy(), reason)
    assert decided is None if outcome is None else type(decided) is outcome


def test_a_timeout_that_is_never_to_be_retried_is_not() -> None:
    policy = TaskPolicy(never_retry=(TimeoutError,), retry=RetryPolicy())
    assert isinstance(outcome_of_interruption(a_claimed_job(), policy, Reason.TIMEOUT), TimedOut)
