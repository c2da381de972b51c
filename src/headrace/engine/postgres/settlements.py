"""Outcomes as the columns that the function `exchange` takes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from headrace.engine.postgres.rows import clean, wait_seconds
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Released,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.status import State

RETRY, RELEASE, SNOOZE = 0, 1, 2

Columns = tuple[
    list[str],
    list[int],
    list[int],
    list[float],
    list[bytes | None],
    list[str | None],
    list[str | None],
    list[bytes | None],
]

_by_id = attrgetter("job_id")


def columns(settlements: Sequence[Settlement]) -> Columns:
    """Ids, tokens, kinds, delays, results, error types, errors and log entries.

    They are sorted by id: two exchanges that settle the same jobs lock them in the same order.
    """
    table: Columns = ([], [], [], [], [], [], [], [])
    ids, tokens, kinds, delays, results, types, errors, entries = table
    for each in sorted(settlements, key=_by_id):
        kind, delay = int(State.COMPLETED), 0.0
        result: bytes | None = None
        error_type: str | None = None
        error: str | None = None
        match each.outcome:
            case Completed(result=value):
                result = value
            case Retry(failure=failure, delay=after):
                kind, delay = RETRY, wait_seconds(after)
                error_type, error = clean(failure.type), clean(failure.message)
            case Failed(failure=failure):
                kind = State.FAILED
                error_type, error = clean(failure.type), clean(failure.message)
            case TimedOut(failure=failure):
                kind = State.TIMEOUT
                error_type, error = clean(failure.type), clean(failure.message)
            case Cancelled(reason=reason):
                kind, error = State.CANCELLED, clean(reason)
            case Released():
                kind = RELEASE
            case Snoozed(delay=after):
                kind, delay = SNOOZE, wait_seconds(after)
        ids.append(each.job_id)
        tokens.append(each.token)
        kinds.append(kind)
        delays.append(delay)
        results.append(result)
        types.append(error_type)
        errors.append(error)
        entries.append(each.entry)
    return table
