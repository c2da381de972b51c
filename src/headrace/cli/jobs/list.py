"""`headrace jobs`: list, show and follow jobs. `change.py` has the verbs that change them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headrace.cli.backend import time_now
from headrace.cli.command import flag, group, option
from headrace.cli.errors import FAILED, OK, notice
from headrace.cli.filters import check_fingerprint, filter_options, make_filter
from headrace.cli.formatting import (
    ago,
    attempt_of,
    clock,
    failure,
    parse_span,
    retry_time,
    short,
    shown_time,
    took,
)
from headrace.cli.ids import whole_id
from headrace.cli.jobs.change import JOB, cancel, retry, signal
from headrace.cli.jobs.show import details, print_details
from headrace.cli.output import (
    Columns,
    JsonList,
    Table,
    is_terminal,
    print_json,
    print_json_line,
    print_line,
)
from headrace.cli.session import CliSession
from headrace.errors import EngineUnavailable, InvalidInput, JobNotFound, ResultTimeout
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.model.views import JobPage
from headrace.monitor.why import waits_for

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

commands = group("List, show, watch, cancel and retry jobs.")

PAGE = 200
# So much of an error fits into a line of its own on a terminal of 80 columns.
SUMMARY = 75
# Between two looks at a job that is watched.
SHORTEST = 0.05
LONGEST = 1.0


@commands.command("list")
@filter_options
@option("--search", "TEXT", "Only with this text, or args.NAME=VALUE.", multiple=True)
@option("--limit -n", "N", "Show at most this many.", type=int, default=50)
@option("--cursor", "ID", "Continue after this job, as the last page says.")
@flag("all_pages --all", "List every job.")
async def list_jobs(
    session: CliSession,
    *,
    limit: int,
    cursor: str | None,
    all_pages: bool,
    fingerprint: str | None,
    search: tuple[str, ...],
    **flags: Any,
) -> None:
    """List jobs, newest first.

    headrace jobs list --status failed,timeout --since 2h
    headrace jobs list --queue mail --all --json | jq -r '.jobs[].job_id'
    headrace jobs list --search args.user_id=7
    """
    if limit < 1:
        raise InvalidInput(f"--limit must be at least 1, got {limit}")
    async with session.backend() as backend:
        if flags.get("parent"):
            flags["parent"] = await whole_id(backend, flags["parent"])
        wanted = make_filter(time_now(backend), **flags)
        how = {"fingerprint": check_fingerprint(fingerprint), "search": search}
        pages = _pages(backend, wanted, cursor, None if all_pages else limit, how)
        if session.json:
            await _print_json(pages)
        else:
            await _print_table(pages, backend, wanted)


async def _pages(
    backend: Backend,
    wanted: JobFilter,
    cursor: str | None,
    limit: int | None,
    how: dict[str, Any],
) -> AsyncIterator[JobPage]:
    """Page by page, so that any number of jobs needs no more memory than a page."""
    left = limit
    while left is None or left > 0:
        page = await backend.list(
            wanted, cursor=cursor, limit=PAGE if left is None else min(PAGE, left), **how
        )
        yield page
        cursor = page.cursor
        if cursor is None:
            return
        left = None if left is None else left - len(page.jobs)


async def _print_json(pages: AsyncIterator[JobPage]) -> None:
    document = JsonList("jobs")
    cursor = None
    async for page in pages:
        document.add([job.to_dict() for job in page.jobs])
        cursor = page.cursor
    document.end(cursor=cursor)


async def _print_table(pages: AsyncIterator[JobPage], backend: Backend, wanted: JobFilter) -> None:
    now = time_now(backend)
    columns: Columns[Job] = {
        "ID": lambda job: job.id,
        "STATUS": lambda job: job.status.value,
        "TASK": lambda job: job.task,
        "QUEUE": lambda job: job.queue,
        ">ATTEMPT": lambda job: attempt_of(job, "/"),
        "CREATED": lambda job: ago(job.created_at, now),
        "LANE": lambda job: job.lane or "-",
        "WHAT": summary,
    }
    table = Table(columns, known={"LANE": wanted.lane})
    count, cursor = 0, None
    async for page in pages:
        count += len(page.jobs)
        cursor, now = page.cursor, time_now(backend)
        if count or not is_terminal():
            table.add(page.jobs)
    if is_terminal():
        if not count:
            print_line("No jobs match.")
        elif cursor is not None:
            print_line(f"More: add --cursor {cursor}, or --all.")


def summary(job: Job) -> str:
    """The one thing worth knowing about a job beside its status."""
    match job.status:
        case Status.RUNNING:
            parts = [job.stage, job.message, f"{job.progress:.0f}%" if job.progress else None]
            return " ".join(part for part in parts if part) or "-"
        case Status.COMPLETED | Status.PENDING:
            return "-"
        case Status.SCHEDULED if job.awaits:
            return f"waits for {waits_for(job.awaits)}"
        case _:
            return short(job.error or "", SUMMARY) or "-"


@commands.command("show")
@JOB
async def show(session: CliSession, *, job_id: str) -> None:
    """Show everything about one job: arguments, result, error, attempts, stages.

    headrace jobs show 01980000-0000-7000-8000-000000000000
    """
    async with session.backend() as backend:
        job, found = await details(backend, await whole_id(backend, job_id))
    if session.json:
        print_json(found)
    else:
        print_details(job, found, time_now(backend))


@commands.command("why")
@JOB
async def why(session: CliSession, *, job_id: str) -> None:
    """Say why a job is not running, or what it is doing.

    headrace jobs why 01980000-0000-7000-8000-000000000000
    """
    async with session.backend() as backend:
        job = await backend.get(await whole_id(backend, job_id))
        reasons = [session.advice(reason) for reason in await backend.why(job.id)]
    session.show({"job_id": job.id, "status": job.status, "reasons": reasons}, *reasons)


@commands.command("watch")
@JOB
@option("--timeout", "SPAN", "Give up after: 30s, 10m, …")
async def watch_job(session: CliSession, *, job_id: str, timeout: str | None) -> int:
    """Follow a job until it is finished. The exit code is 1 if it did not complete.

    With --json each change is one line of JSON.

      headrace jobs watch 01980000-0000-7000-8000-000000000000 --timeout 10m
    """
    limit = None if timeout is None else time.monotonic() + parse_span("--timeout", timeout)
    wait = SHORTEST
    async with session.backend() as backend:
        job = await backend.get(await whole_id(backend, job_id))
        _print(session, backend, job)
        if job.status is Status.PENDING:
            for reason in await backend.why(job.id):
                notice(f"note: {session.advice(reason)}")
        while not job.status.final:
            if limit is not None and time.monotonic() > limit:
                raise ResultTimeout(
                    f"job {job.id} is still {job.status} after {timeout}; it goes on"
                )
            await asyncio.sleep(wait)
            wait = min(wait * 1.3, LONGEST)
            before, job = job, await _again(backend, job)
            if _compared(job) != _compared(before):
                _print(session, backend, job)
                wait = SHORTEST
    return OK if job.status is Status.COMPLETED else FAILED


async def _again(backend: Backend, job: Job) -> Job:
    """Return the job as it is now, or as it was while the engine is away."""
    try:
        return await backend.get(job.id)
    except EngineUnavailable as error:
        notice(f"note: {error}; trying again")
        await asyncio.sleep(LONGEST)
        return job
    except JobNotFound:
        raise JobNotFound(f"job {job.id} was pruned while it was watched") from None


def _print(session: CliSession, backend: Backend, job: Job) -> None:
    now = time_now(backend)
    if session.json:
        print_json_line(job.to_dict())
    else:
        print_line(f"{clock(now)}  {job.status.value:<9}  {_describe(job, now)}")


def _compared(job: Job) -> tuple[Any, ...]:
    """Return what has to differ for a change to be printed."""
    return (job.status, job.attempt, job.stage, round(job.progress), job.message, job.error)


def _describe(job: Job, now: datetime) -> str:
    """Return what matters in a job's status."""
    attempt = f"attempt {attempt_of(job)}"
    match job.status:
        case Status.RUNNING:
            parts = [attempt, job.stage, job.message, f"{job.progress:.0f}%"]
            return ", ".join(part for part in parts if part)
        case Status.SCHEDULED if job.awaits or job.parked or not job.attempt:
            due = f"{'may start' if job.parked else 'due'} {shown_time(job.run_at)}"
            return f"waits for {waits_for(job.awaits)}" if job.awaits else due
        case Status.SCHEDULED:
            return f"{attempt} failed, {retry_time(job, now)}: {failure(job)}"
        case Status.PENDING:
            return f"in queue {job.queue}" + (f", lane {job.lane}" if job.lane else "")
        case Status.COMPLETED:
            return f"in {took(job.started_at, job.completed_at)}, {attempt}"
        case _:
            return f"{attempt}: {failure(job)}"


for each in (cancel, retry, signal):
    commands.add_command(each)
