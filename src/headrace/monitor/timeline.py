"""What has happened to a job, in order and in words. No I/O.

Of the waits before earlier attempts only the beginning and the end are known; of the last one also
how long it waited to be due, for its lane, and for a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from headrace.model.durable.awaited import EVENT
from headrace.model.durable.entries import (
    CHILDREN,
    SLEEP,
    STAGE,
    WAIT,
    ChildrenRecord,
    SleepRecord,
    WaitRecord,
    stage_view,
)
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.model.names import WORKFLOW
from headrace.model.outcome import AttemptEntry
from headrace.model.status import State
from headrace.model.times import moment_of
from headrace.monitor.why import waits_for
from headrace.monitor.words import plural

# Of more than so many attempts, or entries, the first and the last are told.
SHOWN = 50

Kind = Literal[
    "created", "due", "lane", "worker", "wait", "attempt", "stage", "sleep", "event", "children",
    "omitted", "end",
]  # fmt: skip
_ORDER = {kind: number for number, kind in enumerate(Kind.__args__)}  # type: ignore[attr-defined]

_OUTCOMES = {
    "retry": "failed",
    "failed": "failed",
    "timeout": "ran out of time",
    "cancelled": "was cancelled",
    "snoozed": "put itself off",
    "lost": "lost its worker",
}


class TimelineItem(msgspec.Struct, kw_only=True, frozen=True):
    """A moment or a span of a job. `until` None: a moment, or a span that goes on."""

    kind: Kind
    at: datetime
    words: str
    until: datetime | None = None
    goes_on: bool = False
    attempt: int | None = None
    worker: str | None = None
    error: str | None = None


def timeline(job: Job, entries: Sequence[StoredEntry], now: datetime) -> list[TimelineItem]:
    """Return what has happened to a job, the earliest first."""
    first, omitted, last = attempts_of(job)
    items = [TimelineItem(kind="created", at=job.created_at, words=f"created ({job.source})")]
    items += _attempts(job, first, omitted, last, now)
    items += _entries(entries)
    if job.completed_at is not None and job.status.final:
        error = f": {job.error}" if job.error else ""
        items.append(TimelineItem(kind="end", at=job.completed_at, words=f"{job.status}{error}"))
    # What begins at the same moment: the cause before its effect.
    return sorted(items, key=lambda item: (item.at, _ORDER[item.kind]))


def attempts_of(job: Job) -> tuple[list[AttemptEntry], int, list[AttemptEntry]]:
    """Return the first attempts that did not complete, how many were left out, and the last."""
    lines = job.log.splitlines()
    if len(lines) <= 2 * SHOWN:
        return job.attempts, 0, []
    first, last = (
        msgspec.structs.replace(job, log=b"\n".join(part)).attempts
        for part in (lines[:SHOWN], lines[-SHOWN:])
    )
    return first, len(lines) - 2 * SHOWN, last


def _attempts(
    job: Job,
    first: Sequence[AttemptEntry],
    omitted: int,
    last: Sequence[AttemptEntry],
    now: datetime,
) -> Iterator[TimelineItem]:
    ended: datetime | None = job.created_at
    before: AttemptEntry | None = None
    for number, entry in enumerate([*first, *last]):
        if omitted and number == len(first):
            words = f"… {omitted:,} more attempts"
            yield TimelineItem(kind="omitted", at=first[-1].ended_at, words=words)
            ended = None
        start = entry.started_at
        if ended is not None and start is not None and start > ended:
            yield TimelineItem(kind="wait", at=ended, until=start, words=_waited(before, entry))
        yield _attempt(job, entry)
        ended, before = entry.ended_at, entry
    yield from _now(job, before, now)


def _waited(before: AttemptEntry | None, entry: AttemptEntry) -> str:
    if before is None:
        return "waited until it was due, for its lane, or for a worker"
    if before.outcome == "snoozed":
        return "slept, or waited for something"
    if before.outcome == "retry":
        return "waited for the next attempt"
    return f"was finished; run again as attempt {entry.attempt}"


def outcome_words(job: Job, entry: AttemptEntry) -> str:
    """How an attempt ended. A run of a workflow has not put itself off: it waits for its steps."""
    waited = entry.outcome == "snoozed" and job.task == WORKFLOW
    return "waited" if waited else entry.outcome


def _attempt(job: Job, entry: AttemptEntry) -> TimelineItem:
    told = _OUTCOMES.get(entry.outcome, entry.outcome)
    if outcome_words(job, entry) == "waited":
        told = "began to wait for steps"
    words = f"attempt {entry.attempt} {told} on worker {entry.worker!r}"
    if entry.outcome == "retry":
        words += ", to be tried again"  # on whichever worker
    failure = entry.failure
    error = None if failure is None else f"{failure.type}: {failure.message}"
    start = entry.started_at or entry.ended_at
    return TimelineItem(
        kind="attempt",
        at=start,
        until=entry.ended_at,
        words=words,
        attempt=entry.attempt,
        worker=entry.worker,
        error=error,
    )


def _now(job: Job, before: AttemptEntry | None, now: datetime) -> Iterator[TimelineItem]:
    """What the job itself tells: its last wait, and the attempt that runs or has completed."""
    state = job.state
    start = job.started_at if state in (State.RUNNING, State.COMPLETED) else None
    if start is None and job.status.final:
        return  # the log has its last attempt, if there was one
    begin = job.created_at if before is None else before.ended_at
    yield from _last_wait(job, begin, before, start, now)
    if start is None:
        return
    if state is State.COMPLETED:
        end, words = job.completed_at, f"attempt {job.attempt} completed"
    else:
        end, words = None, f"attempt {job.attempt} is running"
    yield TimelineItem(
        kind="attempt",
        at=start,
        until=end,
        goes_on=end is None,
        words=f"{words} on worker {job.worker!r}",
        attempt=job.attempt,
        worker=job.worker,
    )


def _last_wait(
    job: Job,
    begin: datetime,
    before: AttemptEntry | None,
    start: datetime | None,
    now: datetime,
) -> Iterator[TimelineItem]:
    end = start or now
    due = max(job.run_at, begin)
    if job.state is State.SCHEDULED:
        words = f"waits for {waits_for(job.awaits)}" if job.awaits else _waits(before)
        if job.parked:
            words = f"waits for the rate of lane {job.lane!r}, or for the end of its hold"
        yield TimelineItem(kind="due", at=begin, until=job.run_at, goes_on=True, words=words)
        return
    # Woken before its time: it was due then, whatever was planned.
    due = min(due, end)
    if due > begin:
        words = "waited until it was due" if before is None else _waited(before, before)
        yield TimelineItem(kind="due", at=begin, until=due, words=words)
    lane = f"its place in lane {job.lane!r}"
    if job.state is State.WAITING:
        yield TimelineItem(kind="lane", at=due, goes_on=True, words=f"waits for {lane}")
        return
    admitted = job.admitted_at
    if admitted is not None and due < admitted <= end:
        yield TimelineItem(kind="lane", at=due, until=admitted, words=f"waited for {lane}")
        due = admitted
    if start is None:
        yield TimelineItem(kind="worker", at=due, goes_on=True, words="waits for a worker")
    elif start > due:
        yield TimelineItem(kind="worker", at=due, until=start, words="waited for a worker")


def _waits(before: AttemptEntry | None) -> str:
    if before is None:
        return "waits until it is due"
    return "sleeps" if before.outcome == "snoozed" else "waits for the next attempt"


def _entries(entries: Sequence[StoredEntry]) -> Iterator[TimelineItem]:
    known = [entry for entry in entries if entry.kind in _READ]
    shown: Iterable[StoredEntry] = known
    if len(known) > 2 * SHOWN:
        shown = [*known[:SHOWN], *known[-SHOWN:]]
        words = f"… {len(known) - 2 * SHOWN:,} more stages, sleeps and events"
        yield TimelineItem(kind="omitted", at=known[SHOWN].at, words=words)
    for entry in shown:
        try:
            yield _READ[entry.kind](entry)
        except msgspec.MsgspecError:
            continue  # written by a version that is not known here


def _stage(entry: StoredEntry) -> TimelineItem:
    stage = stage_view(entry)
    tries = f" after {stage.tries} tries" if stage.tries > 1 else ""
    return TimelineItem(
        kind="stage",
        at=stage.at - timedelta(seconds=stage.seconds),
        until=stage.at,
        words=f"stage {stage.name!r}{tries}",
        attempt=stage.attempt or None,
    )


def _sleep(entry: StoredEntry) -> TimelineItem:
    record = msgspec.json.decode(entry.body, type=SleepRecord)
    name = "" if entry.name.rpartition("/")[2].startswith("#") else f" {entry.name!r}"
    words = f"sleep{name}"
    return TimelineItem(kind="sleep", at=entry.at, until=moment_of(record.until), words=words)


def _wait(entry: StoredEntry) -> TimelineItem:
    record = msgspec.json.decode(entry.body, type=WaitRecord)
    late = " in vain" if record.timed_out else ""
    words = f"waited for event {entry.name!r}{late}"
    return TimelineItem(kind="sleep", at=entry.at, words=words)


def _event(entry: StoredEntry) -> TimelineItem:
    return TimelineItem(kind="event", at=entry.at, words=f"event {entry.name!r} was delivered")


def _children(entry: StoredEntry) -> TimelineItem:
    count = msgspec.json.decode(entry.body, type=ChildrenRecord).count
    words = f"made {plural(count, 'child job')}"
    return TimelineItem(kind="children", at=entry.at, words=words)


_READ = {STAGE: _stage, SLEEP: _sleep, WAIT: _wait, EVENT: _event, CHILDREN: _children}
