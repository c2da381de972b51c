"""Looking for jobs by what no engine has an index for: words, arguments, the cause of an error.

The work is bounded by time and by the number of jobs, and the page tells where to go on. Whatever
is looked for, is looked for in the job as the caller may see it (`seen`): if hidden values could be
found, they could be guessed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from headrace.engine.base import Viewing
from headrace.engine.bounded_reads import parts
from headrace.errors import InvalidInput
from headrace.model.fingerprint import fingerprint
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.model.views import JobCount, JobPage
from headrace.monitor.paging import FIRST, MOST, fitting, weight

Seen = Callable[[Job], Job]
Matches = Callable[[Job], bool]

LONGEST_SECONDS = 1.0
MOST_JOBS = 100_000
COUNTED = 10_000
STEP = 1_000
PAGE_BYTES = 8 * 1_048_576
WORKFLOW = "headrace.workflow"
_PATH = re.compile(r"(args|meta)((?:\.[^.=\s]+)+)=(.*)", re.DOTALL)
_WITH_ERRORS = tuple(status for status in Status if status is not Status.COMPLETED)


def _as_it_is(job: Job) -> Job:
    return job


def fingerprint_of(job: Job) -> str | None:
    """Return the fingerprint of the error that a job shows; None if it has none."""
    return None if job.error_type is None else fingerprint(job.error_type, job.error or "")


async def brief_page(
    engine: Viewing,
    wanted: JobFilter,
    mark: str | None,
    *,
    cursor: str | None,
    limit: int,
    look: int,
    seen: Seen | None = None,
    runs: bool = True,
) -> JobPage:
    """Return brief jobs as `list_jobs` does; with `mark` only those whose error has this
    fingerprint, and without `runs` none that are runs of workflows.
    """
    if mark is not None and not wanted.statuses:
        wanted = msgspec.structs.replace(wanted, statuses=_WITH_ERRORS)
    page = await engine.list_jobs(wanted, cursor=cursor, limit=limit, look=look, brief=True)
    if not runs:
        page = JobPage([job for job in page.jobs if job.task != WORKFLOW], page.cursor)
    if mark is None:
        return page
    jobs = [job for job in page.jobs if fingerprint_of(job) == mark]
    if seen is not None and jobs:
        # Hidden are values in the arguments, which brief jobs do not have.
        shown = {
            job.id
            async for some in parts(engine, [job.id for job in jobs])
            for job in some
            if fingerprint_of(seen(job)) == mark
        }
        jobs = [job for job in jobs if job.id in shown]
    return JobPage(jobs, page.cursor)


async def find(
    engine: Viewing,
    wanted: JobFilter,
    terms: Sequence[str] = (),
    mark: str | None = None,
    *,
    cursor: str | None = None,
    limit: int = 50,
    brief: bool = False,
    seen: Seen | None = None,
    seconds: float = LONGEST_SECONDS,
) -> JobPage:
    """Return a page of jobs that match all terms, and whose error has the fingerprint `mark`."""
    if terms:
        matches = all_of(terms, mark)
        page = await search(
            engine, wanted, matches, cursor=cursor, limit=limit, seen=seen or _as_it_is,
            seconds=seconds,
        )  # fmt: skip
    else:
        page = await _marked(
            engine, wanted, mark, cursor=cursor, limit=limit, seen=seen, seconds=seconds
        )
        if not brief:
            ids = [job.id for job in page.jobs]
            whole = {job.id: job async for some in parts(engine, ids) for job in some}
            page.jobs = [whole[each] for each in ids if each in whole]
    if page.cursor is not None:
        page.searched_to = time_of(page.cursor)
    return page


async def _marked(
    engine: Viewing,
    wanted: JobFilter,
    mark: str | None,
    *,
    cursor: str | None,
    limit: int,
    seen: Seen | None,
    seconds: float,
) -> JobPage:
    end = time.monotonic() + seconds
    found: list[Job] = []
    looked = 0
    while True:
        page = await brief_page(
            engine, wanted, mark, cursor=cursor, limit=MOST, look=STEP, seen=seen
        )
        found += page.jobs
        cursor, looked = page.cursor, looked + STEP
        if len(found) > limit:
            return JobPage(found[:limit], found[limit - 1].id)
        if len(found) == limit or cursor is None or looked >= MOST_JOBS or time.monotonic() >= end:
            return JobPage(found, cursor)


async def count(
    engine: Viewing,
    wanted: JobFilter,
    mark: str | None = None,
    *,
    look: int = COUNTED,
    seen: Seen | None = None,
) -> JobCount:
    """Count jobs as `count_jobs` does; with `mark` only those whose error has this fingerprint."""
    if mark is None:
        return await engine.count_jobs(wanted, look=look)
    cursor: str | None = None
    counted = 0
    while look > 0:
        step = min(look, STEP)
        page = await brief_page(
            engine, wanted, mark, cursor=cursor, limit=step, look=step, seen=seen
        )
        counted, cursor, look = counted + len(page.jobs), page.cursor, look - step
        if cursor is None:
            return JobCount(counted, True)
    return JobCount(counted, False)


async def search(
    engine: Viewing,
    wanted: JobFilter,
    matches: Matches,
    *,
    cursor: str | None = None,
    limit: int = 50,
    seen: Seen = _as_it_is,
    seconds: float = LONGEST_SECONDS,
    most: int = MOST_JOBS,
) -> JobPage:
    """Return jobs that match, the newest first. The page ends early, with a cursor to go on, after
    so many seconds or jobs, however few were found.
    """
    end = time.monotonic() + seconds
    found: list[Job] = []
    step, looked, size = FIRST, 0, 0
    while True:
        page = await engine.list_jobs(wanted, cursor=cursor, limit=step, look=step)
        for job in page.jobs:
            if matches(seen(job)):
                found.append(job)
                size += weight(job)
                if len(found) == limit or size >= PAGE_BYTES:
                    return JobPage(found, job.id)
        cursor, looked = page.cursor, looked + step
        if cursor is None or looked >= most or time.monotonic() >= end:
            return JobPage(found, cursor)
        step = fitting(page.jobs)


def all_of(terms: Sequence[str], mark: str | None = None) -> Matches:
    """Return whether a job matches all terms: `args.user_id=7`, or a text that it has somewhere;
    and the fingerprint, if one is given.
    """
    checks = [_term(term) for term in terms]
    if mark is not None:
        checks.append(lambda job: fingerprint_of(job) == mark)
    return lambda job: all(check(job) for check in checks)


def time_of(job_id: str) -> datetime:
    """Return when a job of this id was made, by the clock of its maker."""
    # Ids of others may be of another kind, and tell any time.
    stamp = int(job_id.replace("-", "")[:12], 16) / 1000
    return datetime.fromtimestamp(min(stamp, 253_370_764_800), UTC)


def _term(term: str) -> Matches:
    if not term.strip():
        raise InvalidInput("search is empty; write a text, or args.name=value")
    if (path := _PATH.fullmatch(term)) is None:
        return _has_text(term)
    part, names, value = path[1], path[2].removeprefix(".").split("."), path[3]

    def at_path(job: Job) -> bool:
        document = job.args_json if part == "args" else job.meta_json
        found: Any = msgspec.json.decode(document or b"{}")
        for name in names:
            match found:
                case dict() if name in found:
                    found = found[name]
                case list() if name.isdecimal() and int(name[:9]) < len(found):
                    found = found[int(name[:9])]
                case _:
                    return False
        return found == value if isinstance(found, str) else _json(found) == value

    return at_path


def _has_text(text: str) -> Matches:
    # In JSON a text may have to be written with escapes.
    wanted = text.casefold()
    written = _json(text)[1:-1].casefold()

    def has_text(job: Job) -> bool:
        plain = (job.id, job.key, job.error_type, job.error)
        return any(each is not None and wanted in each.casefold() for each in plain) or any(
            document is not None and written in document.decode("utf-8", "replace").casefold()
            for document in (job.args_json, job.meta_json)
        )

    return has_text


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
