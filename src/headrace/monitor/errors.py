"""Failed jobs in groups: by task, type of the error, and fingerprint of its message.

Only the newest are looked at, so that it costs the same whatever the store holds; the answer says
how many, and whether there are others. What a job failed with is forgotten when it is run again,
so nothing is said of failures that were retried and then succeeded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import msgspec

from headrace.api_types.monitoring import ErrorGroup, ErrorGroups
from headrace.engine.base import Viewing
from headrace.model.fingerprint import fingerprint, normalised
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status

FAILED = (Status.FAILED, Status.TIMEOUT)
# So many failures are grouped, read in pages, among so many that are looked at.
MOST_FAILURES = 5_000
# Pages are small: others are served between two of them.
PAGE = 250
STEP = 1_000
# Where nobody waits for it, others come first: between two pages the store has a rest that is so
# many times as long as the page took.
GENTLY = 4.0
LOOK = 20_000
SAMPLES = 5
# Only the largest groups are returned, and what all others have together.
MOST_GROUPS = 200
# Samples are read whole, so many bytes of arguments at once.
PART_BYTES = 4 * 1_048_576
# So many points of a line by minute at most; over a longer time each is of several minutes.
MOST_POINTS = 120
MINUTE = 60


async def error_groups(
    engine: Viewing,
    wanted: JobFilter,
    *,
    most: int = MOST_FAILURES,
    visible: Callable[[Sequence[Job]], Awaitable[list[Job]]] | None = None,
    gently: bool = False,
) -> ErrorGroups:
    """Return the newest failures that match, in groups, the largest first. `visible` says which of
    them the caller may see. `gently`: nobody waits for it, so others come first.
    """
    filter = msgspec.structs.replace(wanted, statuses=FAILED)
    jobs: list[Job] = []
    cursor, looked = None, 0
    while len(jobs) < most and looked < LOOK:
        limit, began = min(PAGE, most - len(jobs)), time.perf_counter()
        page = await engine.list_jobs(filter, cursor=cursor, limit=limit, brief=True, look=STEP)
        jobs += page.jobs if visible is None else await visible(page.jobs)
        cursor, looked = page.cursor, looked + STEP
        if cursor is None:
            break
        if gently:
            await asyncio.sleep(GENTLY * (time.perf_counter() - began))
    # Of many it takes longer than the event loop may be kept from other things.
    return await asyncio.to_thread(grouped, jobs, complete=cursor is None)


async def hide(
    engine: Viewing, found: ErrorGroups, message_of: Callable[[Job], str]
) -> ErrorGroups:
    """Show of each group the message of its newest job as `message_of` shows it: what is to be
    hidden is known only where the arguments are. Groups that look the same then are one: by the
    fingerprint of the whole message people could try what is hidden in it.
    """
    shown: dict[str, str] = {}
    ids = [group.job_ids[0] for group in found.groups]
    while ids:
        jobs, ids = await engine.get_part(ids, PART_BYTES)
        shown |= {job.id: message_of(job) for job in jobs}
    for group in found.groups:
        # Of a job that is gone nobody knows what to hide.
        group.message = shown.get(group.job_ids[0], "")
        group.normalised = normalised(group.message)
        mark = fingerprint(group.error_type, group.message)
        group.hidden, group.fingerprint = mark != group.fingerprint, mark
    merged: dict[tuple[str, str, str], ErrorGroup] = {}
    for group in found.groups:
        first = merged.setdefault((group.task, group.error_type, group.fingerprint), group)
        if first is not group:
            _merge(first, group)
    found.groups = sorted(merged.values(), key=_largest_first)
    return found


def _merge(group: ErrorGroup, other: ErrorGroup) -> None:
    group.count += other.count
    group.first_at = min(group.first_at, other.first_at)
    group.last_at = max(group.last_at, other.last_at)
    group.queues = sorted({*group.queues, *other.queues})
    group.job_ids = [*group.job_ids, *other.job_ids][:SAMPLES]
    group.minutes = [a + b for a, b in zip(group.minutes, other.minutes, strict=True)]
    group.hidden = group.hidden or other.hidden


def _largest_first(group: ErrorGroup) -> tuple[int, float]:
    return -group.count, -group.last_at.timestamp()


def grouped(jobs: Sequence[Job], *, complete: bool) -> ErrorGroups:
    """Put failed jobs, the newest first, into groups."""
    groups: dict[tuple[str, str, str], list[Job]] = {}
    # Most of the messages are repeated.
    prints: dict[tuple[str, str], str] = {}
    for job in jobs:
        error = (job.error_type or "", job.error or "")
        mark = prints.get(error)
        if mark is None:
            mark = prints[error] = fingerprint(*error)
        groups.setdefault((job.task, error[0], mark), []).append(job)
    ends = [int(_ended(job).timestamp()) for job in jobs]
    first = min(ends, default=0) // MINUTE * MINUTE
    minutes = (max(ends, default=0) - first) // MINUTE + 1
    step = MINUTE * -(-minutes // MOST_POINTS)
    points = (max(ends, default=0) - first) // step + 1
    found = [_group(key, members, first, step, points) for key, members in groups.items()]
    found.sort(key=_largest_first)
    return ErrorGroups(
        groups=found[:MOST_GROUPS],
        other_groups=len(found[MOST_GROUPS:]),
        other_failures=sum(group.count for group in found[MOST_GROUPS:]),
        looked_at=len(jobs),
        complete=complete,
        first_minute=datetime.fromtimestamp(first, UTC) if jobs else None,
        minute_seconds=step,
    )


def _group(
    key: tuple[str, str, str], jobs: Sequence[Job], first: int, step: int, points: int
) -> ErrorGroup:
    task, error_type, mark = key
    ends = [_ended(job) for job in jobs]
    counts = [0] * points
    for end in ends:
        counts[(int(end.timestamp()) - first) // step] += 1
    message = jobs[0].error or ""
    return ErrorGroup(
        task=task,
        error_type=error_type,
        fingerprint=mark,
        count=len(jobs),
        message=message,
        normalised=normalised(message),
        first_at=min(ends),
        last_at=max(ends),
        queues=sorted({job.queue for job in jobs}),
        job_ids=[job.id for job in jobs[:SAMPLES]],
        minutes=counts,
    )


def _ended(job: Job) -> datetime:
    return job.completed_at or job.created_at
