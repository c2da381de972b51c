"""The state machine, as one table.

Every engine's conformance run checks each recorded move against it, and `docs/` prints it.
"""

from __future__ import annotations

from headrace.model.status import State

S = State

MOVES: dict[State, dict[State, str]] = {
    S.SCHEDULED: {
        S.READY: "due, and no lane or its lane place is kept",
        S.WAITING: "due, and its lane is full",
        S.CANCELLED: "cancelled",
    },
    S.WAITING: {
        S.READY: "admitted to its lane",
        S.CANCELLED: "cancelled",
    },
    S.READY: {
        S.RUNNING: "claimed",
        S.WAITING: "beaten by a job of higher priority in its lane",
        S.SCHEDULED: "parked: the rate of its lane, or a hold, lets nothing start yet",
        S.CANCELLED: "cancelled",
    },
    S.RUNNING: {
        S.COMPLETED: "the handler returned",
        S.FAILED: "the handler failed for the last time",
        S.TIMEOUT: "the last attempt ran out of time",
        S.CANCELLED: "cancelled while running",
        S.SCHEDULED: "retry later, or snoozed",
        S.READY: "retry at once, or given back",
        S.WAITING: "given back, and its lane is full",
    },
    S.COMPLETED: {S.READY: "run again by hand", S.WAITING: "run again by hand, lane full"},
    S.FAILED: {S.READY: "run again by hand", S.WAITING: "run again by hand, lane full"},
    S.TIMEOUT: {S.READY: "run again by hand", S.WAITING: "run again by hand, lane full"},
    S.CANCELLED: {S.READY: "run again by hand", S.WAITING: "run again by hand, lane full"},
}


def allowed(before: State, after: State) -> bool:
    """Whether a job may move from one state to the other."""
    return after in MOVES[before]
