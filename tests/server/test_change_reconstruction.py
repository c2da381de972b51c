"""What happened between two looks at a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from headrace.model.ids import new_id
from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry, Failure
from headrace.model.status import State, Status
from headrace.monitor.changes.reconstruction import (
    changes_since,
    changes_since_creation,
    fingerprint,
    parse_fingerprint,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def a_job(state: State, token: int = 0, *past: AttemptEntry, **fields: Any) -> Job:
    return Job(
        **{
            "id": JOB,
            "task": "t",
            "queue": "q",
            "state": state,
            "token": token,
            "attempt": token,
            "args_json": b"{}",
            "created_at": START,
            "run_at": START,
            "log": b"\n".join(msgspec.json.encode(entry) for entry in past),
            **fields,
        }
    )


def failed(token: int, began: float, ended: float, outcome: str = "retry") -> AttemptEntry:
    failure = Failure("ValueError", f"attempt {token}")
    return AttemptEntry(token, token, outcome, "w", at(ended), at(began), failure)


JOB = new_id()


def path(before: Job, after: Job) -> list[str]:
    return [step.status.value for step in changes_since(fingerprint(before), after)]


PENDING = a_job(State.READY)
WAITING = a_job(State.SCHEDULED)
RUNNING = a_job(State.RUNNING, 1)
COMPLETED = a_job(State.COMPLETED, 1)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PENDING, PENDING, []),
        (PENDING, RUNNING, ["running"]),
        (PENDING, COMPLETED, ["running", "completed"]),
        (WAITING, PENDING, ["pending"]),
        (WAITING, COMPLETED, ["pending", "running", "completed"]),
        (PENDING, a_job(State.CANCELLED), ["cancelled"]),
        (RUNNING, COMPLETED, ["completed"]),
        (COMPLETED, PENDING, []),  # an older look: tokens never shrink
        (COMPLETED, a_job(State.READY, 1), ["pending"]),  # run again by hand
        (COMPLETED, a_job(State.COMPLETED, 2), ["pending", "running", "completed"]),
        (RUNNING, a_job(State.READY, 1), ["pending"]),  # given back unstarted
        (
            RUNNING,
            a_job(State.READY, 1, failed(1, 0, 1), run_at=at(6)),
            ["scheduled", "pending"],
        ),
        (
            PENDING,
            a_job(State.COMPLETED, 3, failed(1, 0, 1), failed(2, 6, 7), started_at=at(17)),
            [
                *("running", "scheduled", "pending"),
                *("running", "scheduled", "pending"),
                *("running", "completed"),
            ],
        ),
        (
            RUNNING,
            a_job(State.RUNNING, 2, failed(1, 0, 1), started_at=at(1.001)),
            ["pending", "running"],  # a retry without a delay
        ),
        (
            PENDING,
            a_job(State.FAILED, 1, failed(1, 0, 1, "failed")),
            ["running", "failed"],
        ),
    ],
)
def test_no_change_of_status_is_missed(before: Job, after: Job, expected: list[str]) -> None:
    assert path(before, after) == expected


def test_a_job_that_nobody_knew_is_told_from_its_birth() -> None:
    assert [step.status for step in changes_since_creation(COMPLETED)] == [
        "pending",
        "running",
        "completed",
    ]
    assert [step.status for step in changes_since_creation(WAITING)] == ["scheduled"]


def test_an_earlier_status_shows_nothing_of_what_came_later() -> None:
    done = a_job(State.COMPLETED, 1, result_json=b"3", completed_at=at(2), started_at=at(1))
    running, _ = changes_since(fingerprint(PENDING), done)
    assert (running.result, running.completed_at, running.started_at) == (None, None, at(1))


def test_progress_is_a_change_too() -> None:
    moved = msgspec.structs.replace(RUNNING, progress=10.0)
    assert [step.progress for step in changes_since(fingerprint(RUNNING), moved)] == [10.0]


def test_a_job_that_was_claimed_very_often_is_told_in_short() -> None:
    assert len(changes_since(fingerprint(PENDING), a_job(State.RUNNING, 10_000))) < 200


def test_what_was_seen_survives_as_text() -> None:
    seen = fingerprint(RUNNING)
    assert parse_fingerprint(seen.text) == seen
    for text in ("", "1", "1.running", "x.running.00", "1.nope.00000000", "1.running.0", "٣.a.b"):
        assert parse_fingerprint(text) is None
    assert Status.RUNNING in seen.text
