"""Statuses that people see, and states that engines keep.

An engine tells "waits for its lane" from "may run now", because only the latter may be claimed.
People see both as `pending`.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Status(StrEnum):
    """Where a job is, in the words of the API, the CLI and the dashboard."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether a job in this status is finished."""
        return self in FINAL


FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.TIMEOUT, Status.CANCELLED})
ACTIVE = frozenset(Status) - FINAL


class State(IntEnum):
    """What engines store. The numbers are part of every schema: never renumber them."""

    SCHEDULED = 0
    WAITING = 1
    READY = 2
    RUNNING = 3
    COMPLETED = 4
    FAILED = 5
    TIMEOUT = 6
    CANCELLED = 7

    @property
    def status(self) -> Status:
        """The status that people see."""
        return _STATUS[self]


_STATUS = {
    State.SCHEDULED: Status.SCHEDULED,
    State.WAITING: Status.PENDING,
    State.READY: Status.PENDING,
    State.RUNNING: Status.RUNNING,
    State.COMPLETED: Status.COMPLETED,
    State.FAILED: Status.FAILED,
    State.TIMEOUT: Status.TIMEOUT,
    State.CANCELLED: Status.CANCELLED,
}

STATES: dict[Status, tuple[State, ...]] = {
    status: tuple(state for state, shown in _STATUS.items() if shown is status) for status in Status
}
