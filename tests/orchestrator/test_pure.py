"""The rules of the orchestrator that need no engine."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headrace.errors import (
    AuthenticationError,
    RetryLater,
    Snooze,
    ValidationError,
)
from headrace.model.job import ClaimedJob
from headrace.model.outcome import (
    AttemptEntry,
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.policy import TaskPolicy
from headrace.model.retry import LONGEST_DELAY, RetryPolicy
from headrace.orchestrator.claiming import prefetch
from headrace.orchestrator.claiming.poll_backoff import PollBackoff
from headrace.orchestrator.claiming.prefetch import ClaimAges, PrefetchLimit
from headrace.orchestrator.middleware import chain_of
from headrace.orchestrator.running.attempt import Attempt, Reason
from headrace.orchestrator.running.outcomes import outcome_of_error, outcome_of_interruption
from headrace.orchestrator.settling import settle_buffer
from headrace.orchestrator.settling.attempt_log import describe_failure, log_entry, shorten
from headrace.orchestrator.settling.settle_buffer import SettleBuffer
from headrace.orchestrator.worker_info import make_worker_info, with_unique_suffix
from headrace.telemetry import Histogram, Telemetry

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def a_claimed_job(**fields: Any) -> ClaimedJob:
    values: dict[str, Any] = {
        "id": "0198",
        "token": 7,
        "attempt": 1,
        "task": "work",
        "queue": "default",
        "args": b"{}",
        "max_attempts": 4,
        "timeout": 600.0,
    }
    return ClaimedJob(**values | fields)


# --- verdict


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


# --- attempt


def test_the_first_reason_counts_but_a_lost_lease_beats_all() -> None:
    attempt = Attempt(a_claimed_job(timeout=10), 100.0)
    assert attempt.deadline == 110
    attempt.interrupt(Reason.TIMEOUT, now=110, patience=5)
    attempt.interrupt(Reason.CANCELLED, now=111, patience=5)
    assert (attempt.reason, attempt.patience_until) == (Reason.TIMEOUT, 115)
    attempt.interrupt(Reason.LOST, now=112, patience=5)
    assert attempt.reason is Reason.LOST
    assert Attempt(a_claimed_job(timeout=None), 1.0).deadline == float("inf")


# --- journal


def test_texts_are_shortened_with_a_mark() -> None:
    assert shorten("short", 100) == "short"
    assert shorten("x" * 5_000, 100) == "x" * 80 + "… (5,000 characters)"
    assert shorten("a\x00b\ud800", 100) == "a\ufffdb?"


def test_a_failure_tells_the_handlers_own_frames() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def handler() -> None:
        raise KeyError("nothing")

    try:
        handler()
    except KeyError as error:
        failure = describe_failure(error)
    assert (failure.type, failure.message) == ("KeyError", "'nothing'")
    assert "in handler" in (failure.traceback or "")
    assert describe_failure(Unspeakable()).message == "<Unspeakable whose text raised RuntimeError>"
    assert describe_failure(ValueError()).message == "ValueError"
    assert describe_failure(ValueError("never raised")).traceback is None


def test_an_error_of_a_child_brings_its_traceback() -> None:
    error = ValueError("there")
    error.remote_traceback = "Traceback: over there"  # type: ignore[attr-defined]
    assert describe_failure(error).traceback == "Traceback: over there"


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (Retry(Failure("E", "m"), 1), "retry"),
        (Failed(Failure("E", "m")), "failed"),
        (TimedOut(Failure("E", "m")), "timeout"),
        (Cancelled(), "cancelled"),
        (Snoozed(1), "snoozed"),
    ],
)
def test_every_attempt_that_did_not_complete_leaves_a_line(outcome: Outcome, shown: str) -> None:
    line = log_entry(a_claimed_job(), outcome, worker="w", started_at=NOW, ended_at=NOW)
    assert line is not None
    assert b"\n" not in line
    entry = msgspec.json.decode(line, type=AttemptEntry)
    assert (entry.outcome, entry.attempt, entry.token, entry.worker) == (shown, 1, 7, "w")


@pytest.mark.parametrize("outcome", [Completed(), Released()])
def test_completed_and_unstarted_ones_leave_none(outcome: Outcome) -> None:
    assert log_entry(a_claimed_job(), outcome, worker="w", started_at=None, ended_at=NOW) is None


# --- claiming ahead


def test_a_new_worker_is_cautious_and_learns() -> None:
    prefetch_limit = PrefetchLimit(10)
    assert prefetch_limit.count() == 0
    for _ in range(200):
        prefetch_limit.observe_duration(0.0001)
    assert prefetch_limit.count() == prefetch.LIMIT
    for _ in range(200):
        prefetch_limit.observe_duration(0.01)
    assert 45 <= prefetch_limit.count() <= 50
    prefetch_limit.observe_duration(10)
    assert prefetch_limit.count() == 0


def test_misjudged_jobs_make_it_cautious_again() -> None:
    prefetch_limit = PrefetchLimit(10)
    for _ in range(200):
        prefetch_limit.observe_duration(0.0001)
    prefetch_limit.reset()
    assert prefetch_limit.count() == 0


def test_large_jobs_are_not_hoarded() -> None:
    prefetch_limit = PrefetchLimit(10)
    for _ in range(200):
        prefetch_limit.observe_duration(0.0001)
    prefetch_limit.observe_size(1_048_576)
    assert prefetch_limit.count() == 32
    for _ in range(10):
        prefetch_limit.observe_size(10)
    assert prefetch_limit.count() == prefetch.LIMIT


def test_arrivals_know_how_long_jobs_have_waited() -> None:
    ages = ClaimAges()
    assert ages.oldest() is None
    ages.add(3, 100.0)
    ages.add(2, 100.5)
    assert (ages.count, ages.oldest()) == (5, 100.0)
    assert ages.overdue(100.9) == 0
    assert ages.overdue(101.1) == 3
    ages.gone += 2
    assert ages.overdue(101.1) == 1
    assert ages.overdue(101.6) == 3
    ages.gone += 1
    assert (ages.count, ages.oldest()) == (2, 100.5)
    ages.gone += 2
    assert ages.oldest() is None
    assert ages.overdue(1_000) == 0


# --- settling


def outcomes(count: int, result: bytes = b"null") -> list[Settlement]:
    return [Settlement(f"job-{n}", 1, Completed(result)) for n in range(count)]


def test_outcomes_stay_until_they_are_sent() -> None:
    buffer = SettleBuffer()
    made = outcomes(3)
    buffer.pending.extend(made)
    batch = buffer.take()
    assert batch == made
    buffer.put_back(batch, may_be_poisoned=False)
    assert list(buffer.pending) == made
    batch = buffer.take()
    assert batch == made
    buffer.sent(batch)
    assert len(buffer) == 0


def test_a_batch_is_bounded_in_number_and_size() -> None:
    buffer = SettleBuffer()
    buffer.pending.extend(outcomes(settle_buffer.BATCH + 5))
    assert [len(buffer.take()), len(buffer.take())] == [settle_buffer.BATCH, 5]
    buffer.pending.extend(outcomes(5, b"x" * (settle_buffer.BATCH_BYTES // 2)))
    assert len(buffer.take()) == 2
    buffer.pending.extend(outcomes(1, b"x" * (settle_buffer.BATCH_BYTES * 2)))
    assert len(buffer.take()) == 2


def test_an_outcome_that_breaks_its_batch_is_found_and_replaced() -> None:
    buffer = SettleBuffer()
    buffer.pending.extend(outcomes(20))
    bad, trips = "job-13", 0
    done: dict[str, type[Outcome]] = {}
    while buffer.pending and trips < 100:
        trips += 1
        batch = buffer.take()
        if any(each.job_id == bad and isinstance(each.outcome, Completed) for each in batch):
            buffer.put_back(batch, may_be_poisoned=True)
        else:
            done |= {each.job_id: type(each.outcome) for each in batch}
            buffer.sent(batch)
    assert done.pop(bad) is Failed
    assert set(done.values()) == {Completed}
    assert len(done) == 19
    assert not buffer.isolating


# --- the rest


async def test_a_chain_calls_its_layers_from_the_outside_in() -> None:
    seen: list[str] = []

    def layer(name: str) -> Any:
        async def run(call_next: Any, job: Any, ctx: Any) -> Any:
            seen.append(name)
            return await call_next()

        return run

    async def handler() -> int:
        return 1

    context: Any = None
    assert chain_of([]) is None
    chain = chain_of([layer("a"), layer("b"), layer("c")])
    assert chain is not None
    assert await chain(handler, a_claimed_job(), context) == 1
    assert seen == ["a", "b", "c"]


def test_a_worker_has_a_name_of_its_own() -> None:
    one, two = (make_worker_info(name=None, queues=(), slots=3, tasks=()) for _ in range(2))
    assert one.name != two.name
    assert one.id != two.id
    assert str(one.pid) in one.name
    assert make_worker_info(name="mine", queues=("q",), slots=1, tasks=()).name == "mine"
    assert len(with_unique_suffix("x" * 128)) == 128


def test_histograms_count_and_add_up() -> None:
    histogram = Histogram()
    for value in (0.0005, 0.001, 0.3, 10_000.0):
        histogram.observe(value)
    cumulative = dict(histogram.cumulative())
    assert (cumulative[0.001], cumulative[0.5], cumulative[3_600.0]) == (2, 3, 3)
    assert cumulative[float("inf")] == histogram.count == 4
    assert histogram.total == pytest.approx(10_000.3015)


def test_counters_add_up_over_tasks() -> None:
    telemetry = Telemetry()
    telemetry.of("a", "q").completed += 2
    telemetry.of("a", "r").count("retry")
    telemetry.of("b", "q").count("retry")
    assert telemetry.of("a", "q") is telemetry.of("a", "q")
    assert telemetry.outcomes() == {"completed": 2, "retry": 2}


# --- polling


def test_an_idle_worker_looks_less_and_less_often() -> None:
    poll, pauses = PollBackoff(), []
    now = 100.0
    for _ in range(7):
        poll.empty(now, listening=True)
        pauses.append(round(poll.next - now, 3))
        now = poll.next
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    poll.empty(now, listening=False)
    assert poll.next - now == pytest.approx(0.25)
    poll.found(now)
    assert poll.next - now == pytest.approx(0.05)


def test_signals_that_are_for_others_are_worth_less_and_less() -> None:
    poll, now = PollBackoff(), 100.0
    poll.empty(now, listening=True)
    assert poll.ignore_signals_until <= now, "the first signal is always worth a look"
    hushes = []
    for _ in range(8):
        now += 0.001
        poll.empty(now, listening=True)
        hushes.append(round(poll.ignore_signals_until - now, 3))
    assert hushes == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05]
    poll.empty(now + 1, listening=True)
    assert poll.ignore_signals_until <= now + 1
    poll.found(now + 1)
    assert poll.ignore_signals_until == 0
