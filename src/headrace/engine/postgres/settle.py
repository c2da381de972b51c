"""Outcomes as the columns that the function `exchange` takes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from headrace.engine.postgres.rows import storable_or_none
from headrace.engine.text import storable
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent, encode_awaited
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Reserved,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.status import State
from headrace.model.times import kept_delay

RETRY, RELEASE, SNOOZE, RESERVE = 0, 1, 2, 3

NOTHING = Completed().result

_by_id = attrgetter("job_id")


def one_of_each(settlements: Sequence[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """The first outcome of each job, and the others."""
    first: list[Settlement] = []
    others: list[Settlement] = []
    seen: set[str] = set()
    for each in settlements:
        (others if each.job_id in seen else first).append(each)
        seen.add(each.job_id)
    return first, others


def columns(settlements: Sequence[Settlement]) -> tuple[list[Any], ...]:
    """Ids, tokens, kinds, delays, results, error types, errors, log entries and what is awaited.

    They are sorted by id: two exchanges that settle the same jobs lock them in the same order. Each
    job comes once.
    Columns that no outcome needs are empty, and a completed job has no kind: nearly all complete.
    Equal tokens are sent once: the driver looks at every element of an array several times.
    """
    ordered = sorted(settlements, key=_by_id)
    ids = [each.job_id for each in ordered]
    tokens = [each.token for each in ordered]
    if len(ordered) > 1 and tokens.count(tokens[0]) == len(tokens):
        tokens = tokens[:1]
    if all(type(each.outcome) is Completed and each.entry is None for each in ordered):
        results = [_result(each.outcome) for each in ordered]
        if results.count(NOTHING) == len(results):
            results = []
        return ids, tokens, [], [], results, [], [], [], []
    told = [_told(each.outcome) for each in ordered]
    kinds, delays, types, errors = (list(column) for column in zip(*told, strict=True))
    results = [_result(each.outcome) for each in ordered]
    entries = [each.entry for each in ordered]
    awaits = [_awaited(each.outcome) for each in ordered]
    return ids, tokens, kinds, delays, results, types, errors, entries, awaits


def _result(outcome: Outcome) -> bytes | None:
    return outcome.result if isinstance(outcome, Completed) else None


def _told(outcome: Outcome) -> tuple[int, float, str | None, str | None]:
    """Kind, delay, error type and error."""
    match outcome:
        case Completed():
            return State.COMPLETED, 0.0, None, None
        case Retry(failure=failure, delay=delay):
            return RETRY, kept_delay(delay), storable(failure.type), storable(failure.message)
        case Failed(failure=failure) | TimedOut(failure=failure):
            kind = State.FAILED if isinstance(outcome, Failed) else State.TIMEOUT
            return kind, 0.0, storable(failure.type), storable(failure.message)
        case Cancelled(reason=reason):
            return State.CANCELLED, 0.0, None, storable(reason)
        case Released() | Reserved():
            return RELEASE if isinstance(outcome, Released) else RESERVE, 0.0, None, None
        case Snoozed(delay=delay):
            return SNOOZE, kept_delay(delay), None, None


def _awaited(outcome: Outcome) -> str | None:
    if not isinstance(outcome, Snoozed):
        return None
    encoded = encode_awaited(tuple(_storable_wait(each) for each in outcome.awaits))
    return None if encoded is None else encoded.decode()


def _storable_wait(awaited: Awaited) -> Awaited:
    """Names as they are stored where something of that name comes about."""
    match awaited:
        case AwaitedEvent(name=name):
            return AwaitedEvent(storable(name))
        case AwaitedChildren(group=group, left=left):
            return AwaitedChildren(storable_or_none(group), left)
