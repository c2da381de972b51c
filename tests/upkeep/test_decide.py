"""What becomes of jobs whose worker is gone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headrace.model.job import ClaimedJob
from headrace.model.outcome import AttemptEntry, Cancelled, Failed, Outcome, Retry, TimedOut
from headrace.model.views import LostJob
from headrace.upkeep.lost_jobs import outcome_of_lost, settlement_of_lost

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def lost(age: float = 40.0, **fields: Any) -> LostJob:
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
    job = ClaimedJob(**values | fields)
    return LostJob(job=job, worker="gone", started_at=NOW, age=age)


@pytest.mark.parametrize(
    ("job", "outcome", "kind"),
    [
        (lost(), Retry, "WorkerLost"),
        (lost(attempt=4), Failed, "WorkerLost"),
        (lost(on_crash="fail"), Failed, "interrupted"),
        (lost(timeout=None, age=1e6), Retry, "WorkerLost"),
        (lost(timeout=30), Retry, "TimedOut"),
        (lost(timeout=30, attempt=4), TimedOut, "TimedOut"),
        (lost(timeout=30, on_crash="fail"), TimedOut, "TimedOut"),
    ],
)
def test_a_lost_job_is_tried_again_or_set_aside(
    job: LostJob, outcome: type[Outcome], kind: str
) -> None:
    decided = outcome_of_lost(job)
    assert type(decided) is outcome
    assert isinstance(decided, (Retry, Failed, TimedOut))
    assert decided.failure.type == kind
    assert "'gone'" in decided.failure.message
    if isinstance(decided, Retry):
        assert decided.delay == 0


@pytest.mark.parametrize("fields", [{}, {"attempt": 4}, {"timeout": 1}, {"on_crash": "fail"}])
def test_a_lost_job_that_was_to_be_cancelled_is(fields: dict[str, Any]) -> None:
    assert isinstance(outcome_of_lost(lost(cancel_requested=True, **fields)), Cancelled)


@pytest.mark.parametrize(
    ("job", "shown"),
    [
        (lost(), "retry"),
        (lost(attempt=4), "failed"),
        (lost(timeout=30, attempt=4), "timeout"),
        (lost(cancel_requested=True), "cancelled"),
    ],
)
def test_the_attempt_log_tells(job: LostJob, shown: str) -> None:
    settlement = settlement_of_lost(job, now=NOW)
    assert (settlement.job_id, settlement.token) == ("0198", 7)
    assert settlement.entry is not None
    assert b"\n" not in settlement.entry
    entry = msgspec.json.decode(settlement.entry, type=AttemptEntry)
    assert (entry.outcome, entry.worker, entry.token) == (shown, "gone", 7)
    assert (entry.failure is None) == (shown == "cancelled")
