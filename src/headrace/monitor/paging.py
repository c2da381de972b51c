"""Reading many jobs without ever holding much: pages shrink where jobs are large."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from headrace.engine.base import Viewing
from headrace.model.job import Job, JobFilter

FIRST = 20
MOST = 500
# What is read at once; a single job may be larger than that.
BYTES = 4 * 1_048_576


def weight(job: Job) -> int:
    """About how many bytes a job takes."""
    return 500 + len(job.args_json) + len(job.result_json or b"") + len(job.log)


def fitting(jobs: Sequence[Job], most: int = MOST) -> int:
    """How many jobs to read next, judged by those that were read last."""
    if not jobs:
        return most
    average = sum(map(weight, jobs)) / len(jobs)
    return max(1, min(most, int(BYTES / average)))


async def pages(
    engine: Viewing, wanted: JobFilter, *, cursor: str | None = None, first: int = FIRST
) -> AsyncIterator[list[Job]]:
    """All jobs that match, the newest first."""
    limit = first
    while True:
        page = await engine.list_jobs(wanted, cursor=cursor, limit=limit)
        yield page.jobs
        cursor = page.cursor
        if cursor is None:
            return
        limit = fitting(page.jobs)


async def reads(engine: Viewing, ids: Sequence[str]) -> AsyncIterator[tuple[set[str], list[Job]]]:
    """The jobs with these ids in parts: what was asked for, and what was found."""
    limit = FIRST
    while ids:
        asked, ids = ids[:limit], ids[limit:]
        found = await engine.get(asked)
        yield set(asked), found
        limit = fitting(found)
