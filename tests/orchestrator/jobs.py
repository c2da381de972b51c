"""Claimed jobs for tests that need no engine."""

from __future__ import annotations

from typing import Any

from headrace.model.job import ClaimedJob


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
