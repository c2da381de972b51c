"""One attempt: its time limit, and why it was stopped."""

from __future__ import annotations

from headrace.orchestrator.running.attempt import Attempt, Reason
from tests.orchestrator.jobs import a_claimed_job


def test_the_first_reason_counts_but_a_lost_lease_beats_all() -> None:
    attempt = Attempt(a_claimed_job(timeout=10), 100.0)
    assert attempt.deadline == 110
    attempt.interrupt(Reason.TIMEOUT, now=110, patience=5)
    attempt.interrupt(Reason.CANCELLED, now=111, patience=5)
    assert (attempt.reason, attempt.patience_until) == (Reason.TIMEOUT, 115)
    attempt.interrupt(Reason.LOST, now=112, patience=5)
    assert attempt.reason is Reason.LOST
    assert Attempt(a_claimed_job(timeout=None), 1.0).deadline == float("inf")
