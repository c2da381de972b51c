from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.errors import InvalidSetting, ParserError, RetryLater
from headrace.model.retry import BUGS, LONGEST_DELAY, RetryPolicy, delay_after, retryable


def test_the_default_waits_5_10_and_20_seconds() -> None:
    policy = RetryPolicy()
    assert policy.max_attempts == 4
    assert [policy.delay(attempt) for attempt in (1, 2, 3)] == [5, 10, 20]


def test_delays_have_a_ceiling_however_many_attempts() -> None:
    assert RetryPolicy(retries=10_000).delay(10_000) == LONGEST_DELAY
    assert RetryPolicy(maximum=60).delay(50) == 60


@pytest.mark.parametrize(("chance", "expected"), [(0.0, 9.0), (0.5, 10.0), (1.0, 11.0)])
def test_jitter_spreads_both_ways(chance: float, expected: float) -> None:
    policy = RetryPolicy(base=10, jitter=0.1)
    assert policy.delay(1, lambda: chance) == pytest.approx(expected)


@pytest.mark.parametrize("bad", [{"retries": -1}, {"base": -1}, {"factor": 0.5}, {"jitter": 2}])
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting):
        RetryPolicy(**bad)  # type: ignore[arg-type]


def test_what_cannot_succeed_is_not_retried() -> None:
    class AuthenticationError(Exception):
        """A team's own error of that name."""

    class Broken(ValueError):
        pass

    assert retryable(ConnectionError())
    assert retryable(Broken())
    assert not retryable(ParserError())
    assert not retryable(AuthenticationError())
    assert not retryable(Broken(), (ValueError,))
    assert not retryable(Broken(), ("ValueError",))
    assert retryable(Broken(), ("KeyError", KeyError))


@pytest.mark.parametrize(
    "error",
    [
        NameError("x"),
        UnboundLocalError("x"),
        AttributeError("x"),
        TypeError("x"),
        NotImplementedError("x"),
    ],
)
def test_bugs_are_never_retried(error: Exception) -> None:
    assert retryable(error)
    assert not retryable(error, BUGS)


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), IndexError("x"), ValueError("x"), ImportError("x"), AssertionError("x")],
)
def test_errors_that_may_come_from_data_or_deployment_are_no_bugs(error: Exception) -> None:
    assert retryable(error, BUGS)


def test_an_error_decides_together_with_the_policy() -> None:
    policy = RetryPolicy(base=5, factor=2)
    assert delay_after(ConnectionError(), policy, 2) == 10
    assert delay_after(ParserError(), policy, 2) is None
    assert delay_after(KeyError("x"), policy, 2, never_retry=("KeyError",)) is None


def test_the_delay_that_an_error_asks_for_counts_first() -> None:
    policy = RetryPolicy(base=5, factor=2)
    assert delay_after(RetryLater(delay=90), policy, 1) == 90
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert delay_after(RetryLater(at=at), policy, 1, now=at.timestamp() - 7) == 7
    assert delay_after(RetryLater(at=at), policy, 1, now=at.timestamp() + 7) == 0
    assert delay_after(RetryLater(), policy, 3) == 20
    assert delay_after(RetryLater(delay=1e12), policy, 1) == LONGEST_DELAY
