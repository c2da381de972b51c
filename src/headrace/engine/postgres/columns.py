"""Values as the columns that functions take: new jobs, outcomes, notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from headrace.engine.postgres.rates.keys import rate_text
from headrace.engine.stored_text import storable
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent, encode_awaited
from headrace.model.durable.writes import Note
from headrace.model.job import NewJob
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
from headrace.model.times import kept_delay, kept_time

T = TypeVar("T")

# What stands for "no timeout" where a column is sent as one element.
NO_TIMEOUT = -1.0


def once(jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """Return the jobs without those whose id came earlier in the call."""
    if len(jobs) == 1 or len({job.id for job in jobs}) == len(jobs):
        return jobs
    first: dict[str, NewJob] = {}
    for job in jobs:
        first.setdefault(job.id, job)
    return list(first.values())


def is_plain(job: NewJob) -> bool:
    """Return whether the job has no key, lane, parent, expiry and rate: one insert and it is
    stored.
    """
    return (
        job.key is None
        and job.lane is None
        and job.parent is None
        and job.expires_in is None
        and job.expires_at is None
        and job.rate is None
    )


def alike(jobs: Sequence[NewJob]) -> tuple[object, ...] | None:
    """Return what the jobs share if they differ in id, arguments, key and meta only and have no
    lane, parent or expiry; else None. All of them have a key, or none.
    """
    first = jobs[0]
    keyless = first.key is None
    task, queue, source, on_crash = first.task, first.queue, first.source, first.on_crash
    priority, delay, run_at, width = first.priority, first.delay, first.run_at, first.width
    hold, attempts, timeout = first.hold, first.max_attempts, first.timeout
    # Field by field: making a tuple of each job's fields takes five times as long.
    for job in jobs:
        if (
            job.lane is not None
            or job.parent is not None
            or job.expires_in is not None
            or job.expires_at is not None
            or job.rate is not None
            or (job.key is None) is not keyless
            or job.task != task
            or job.queue != queue
            or job.priority != priority
            or job.delay != delay
            or job.run_at != run_at
            or job.width != width
            or job.hold is not hold
            or job.max_attempts != attempts
            or job.timeout != timeout
            or job.on_crash != on_crash
            or job.source != source
        ):
            return None
    return shared(first)


def shared(job: NewJob) -> tuple[object, ...]:
    """Return the values that such jobs have in common."""
    return (
        job.task,
        job.queue,
        job.priority,
        kept_delay(job.delay),
        None if job.run_at is None else kept_time(job.run_at),
        job.width,
        job.hold,
        job.max_attempts,
        job.timeout,
        job.on_crash == "fail",
        job.source,
    )


def differing(jobs: Sequence[NewJob]) -> tuple[list[object] | None, ...]:
    """Return the columns in which such jobs differ."""
    return (
        [job.id for job in jobs],
        [job.args for job in jobs],
        _present([job.key for job in jobs]),
        _present([job.meta for job in jobs]),
    )


def insert_columns(jobs: Sequence[NewJob]) -> tuple[list[object] | None, ...]:
    """Return one list per column. A column whose values are all the same is one element long; one
    that no job has a value for is None.
    """
    parents = _present([job.parent for job in jobs])
    return (
        [job.id for job in jobs],
        _folded([job.args for job in jobs]),
        _folded([job.task for job in jobs]),
        _folded([job.queue for job in jobs]),
        _folded([job.priority for job in jobs]),
        _folded([kept_delay(job.delay) for job in jobs]),
        _present([_time(job.run_at) for job in jobs]),
        _present([job.key for job in jobs]),
        _present([job.lane for job in jobs]),
        _folded([job.width for job in jobs]),
        _folded([job.hold for job in jobs]),
        _folded([job.max_attempts for job in jobs]),
        _folded([NO_TIMEOUT if job.timeout is None else job.timeout for job in jobs]),
        _folded([job.on_crash == "fail" for job in jobs]),
        _folded([job.source for job in jobs]),
        _present([job.meta for job in jobs]),
        parents,
        None if parents is None else _present([job.group for job in jobs]),
        _present([_time(job.expires_at) for job in jobs]),
        _present([_seconds(job.expires_in) for job in jobs]),
        _present([rate_text(job) for job in jobs]),
    )


def as_json(jobs: Sequence[NewJob]) -> str:
    """Return jobs as one text, which every driver passes on unchanged. Bytes become base64."""
    return msgspec.json.encode(
        [
            {
                "id": job.id,
                "args": job.args,
                "task": job.task,
                "queue": job.queue,
                "priority": job.priority,
                "delay": kept_delay(job.delay),
                "run_at_epoch": _time(job.run_at),
                "key": job.key,
                "lane": job.lane,
                "width": job.width,
                "hold": job.hold,
                "max_attempts": job.max_attempts,
                "timeout": job.timeout,
                "fail_on_crash": job.on_crash == "fail",
                "source": job.source,
                "meta": job.meta,
                "parent": job.parent,
                "child_group": job.group,
                "expires_at": _time(job.expires_at),
                "expires_in": _seconds(job.expires_in),
                "rate": rate_text(job),
            }
            for job in jobs
        ]
    ).decode()


# --- outcomes

# Outcome kinds below the final states of `State`; functions/claim/exchange.sql reads them.
RETRY, RELEASE, SNOOZE, RESERVE = 0, 1, 2, 3
PUT_OFF, RESERVE_ALONE = -1, -2

NO_RESULT = Completed().result

_by_id = attrgetter("job_id")


def settlement_columns(settlements: Sequence[Settlement]) -> tuple[list[Any], ...]:
    """Return ids, tokens, kinds, delays, results, error types, errors, log entries, awaited.

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
        if results.count(NO_RESULT) == len(results):
            results = []
        return ids, tokens, [], [], results, [], [], [], []
    described = [_described(each.outcome) for each in ordered]
    kinds, delays, types, errors = (list(column) for column in zip(*described, strict=True))
    results = [_result(each.outcome) for each in ordered]
    entries = [each.entry for each in ordered]
    awaits = [_awaited(each.outcome) for each in ordered]
    return ids, tokens, kinds, delays, results, types, errors, entries, awaits


def _result(outcome: Outcome) -> bytes | None:
    return outcome.result if isinstance(outcome, Completed) else None


def _described(outcome: Outcome) -> tuple[int, float, str | None, str | None]:
    """Return kind, delay, error type and error."""
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
            return _back(outcome), 0.0, None, None
        case Snoozed(delay=delay, started=started):
            return SNOOZE if started else PUT_OFF, kept_delay(delay), None, None


def _back(outcome: Released | Reserved) -> int:
    if isinstance(outcome, Released):
        return RELEASE
    return RESERVE_ALONE if outcome.alone else RESERVE


def _awaited(outcome: Outcome) -> str | None:
    if not isinstance(outcome, Snoozed):
        return None
    encoded = encode_awaited(tuple(_storable_wait(each) for each in outcome.awaits))
    return None if encoded is None else encoded.decode()


def _storable_wait(awaited: Awaited) -> Awaited:
    """Return it with names as they are stored elsewhere."""
    match awaited:
        case AwaitedEvent(name=name):
            return AwaitedEvent(storable(name))
        case AwaitedChildren(group=group, left=left):
            return AwaitedChildren(storable_or_none(group), left)


# --- notes


def merged_notes(notes: Sequence[Note]) -> list[Note]:
    """Return one note for each attempt, by id: what came later replaces what came before."""
    together: dict[tuple[str, int], Note] = {}
    for note in notes:
        attempt = (note.job_id, note.token)
        before = together.get(attempt)
        together[attempt] = note if before is None else _merged(before, note)
    return [together[attempt] for attempt in sorted(together)]


def _merged(before: Note, note: Note) -> Note:
    return Note(
        note.job_id,
        note.token,
        before.stage if note.stage is None else note.stage,
        before.progress if _number(note.progress) is None else note.progress,
        before.message if note.message is None else note.message,
        before.entries + note.entries,
    )


def _number(progress: float | None) -> float | None:
    """Return progress, if it is a number."""
    return None if progress is None or math.isnan(progress) else progress


def note_columns(notes: Sequence[Note]) -> tuple[list[object], ...]:
    """Return ids, tokens, stages, progress, messages; id, token, kind, name, body of entries."""
    entries: list[tuple[object, ...]] = []
    for note in notes:
        last: dict[tuple[str, str], bytes] = {}
        for entry in note.entries:
            # A name that is written twice keeps its first place and its last body.
            last[storable(entry.kind), storable(entry.name)] = entry.body
        entries += [(note.job_id, note.token, *name, body) for name, body in last.items()]
    return (
        [note.job_id for note in notes],
        [note.token for note in notes],
        [storable_or_none(note.stage) for note in notes],
        [_number(note.progress) for note in notes],
        [storable_or_none(note.message) for note in notes],
        *([row[n] for row in entries] for n in range(5)),
    )


# --- shared


def _time(moment: float | None) -> float | None:
    return None if moment is None else kept_time(moment)


def _seconds(delay: float | None) -> float | None:
    return None if delay is None else kept_delay(delay)


def _folded(values: list[T]) -> list[object]:
    return [values[0]] if values.count(values[0]) == len(values) else list(values)


def _present(values: list[T]) -> list[object] | None:
    return None if values.count(values[0]) == len(values) and values[0] is None else list(values)


def storable_or_none(text: str | None) -> str | None:
    """Return text with what a store cannot keep replaced, if there is any."""
    return None if text is None else storable(text)
