"""The attempt log: failures and their texts."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from headrace.model.outcome import (
    AttemptEntry,
    Cancelled,
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Retry,
    Snoozed,
    TimedOut,
)
from headrace.orchestrator.settling.attempt_log import describe_failure, log_entry, shorten
from tests.orchestrator.jobs import a_claimed_job

NOW = datetime(2026, 1, 2, tzinfo=UTC)


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
