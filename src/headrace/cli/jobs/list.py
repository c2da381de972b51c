"""`headrace jobs`: list, show and follow jobs. `change.py` has the verbs that change them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.backend import time_now
from headrace.cli.command import argument, group
from headrace.cli.filters import filter_options, make_filter
from headrace.cli.formatting import ago
from headrace.cli.jobs.change import cancel, retry, signal
from headrace.cli.jobs.follow import watch
from headrace.cli.jobs.show import details, print_details
from headrace.cli.output import JsonList, Table, is_terminal, print_json, print_line
from headrace.cli.session import CliSession
from headrace.errors import InvalidInput
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.model.views import JobPage
from headrace.monitor.why import waits_for

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

commands = group("List, show, watch, cancel and retry jobs.")

PAGE = 200


@commands.command("list")
@filter_options
@click.option("--limit", "-n", metavar="N", type=int, default=50, help="Show at most this many.")
@click.option("--cursor", metavar="ID", help="Continue after this job, as the last page says.")
@click.option("all_pages", "--all", is_flag=True, help="List every job.")
async def list_jobs(
    session: CliSession, *, limit: int, cursor: str | None, all_pages: bool, **flags: Any
) -> None:
    """List jobs, newest first.

    \b
    Examples:
      headrace jobs list --status failed,timeout --since 2h
      headrace jobs list --queue mail --all --json | jq -r '.jobs[].job_id'
    """
    if limit < 1:
        raise InvalidInput(f"--limit must be at least 1, got {limit}")
    async with session.backend() as backend:
        wanted = make_filter(time_now(backend), **flags)
        pages = _pages(backend, wanted, cursor, None if all_pages else limit)
        if session.json:
            await _print_json(pages)
        else:
            await _print_table(pages, backend)


async def _pages(
    backend: Backend, wanted: JobFilter, cursor: str | None, limit: int | None
) -> AsyncIterator[JobPage]:
    """Page by page, so that any number of jobs needs no more memory than a page."""
    left = limit
    while left is None or left > 0:
        page = await backend.list(
            wanted, cursor=cursor, limit=PAGE if left is None else min(PAGE, left)
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


async def _print_table(pages: AsyncIterator[JobPage], backend: Backend) -> None:
    headers = ("ID", "STATUS", "TASK", "QUEUE", "ATTEMPT", "CREATED", "LANE", "WHAT")
    table = Table(headers, right=("ATTEMPT",))
    count, cursor = 0, None
    async for page in pages:
        count += len(page.jobs)
        cursor = page.cursor
        if count or not is_terminal():
            now = time_now(backend)
            table.add(
                [
                    (
                        job.id,
                        job.status.value,
                        job.task,
                        job.queue,
                        f"{job.attempt}/{job.max_attempts}",
                        ago(job.created_at, now),
                        job.lane or "-",
                        summary(job),
                    )
                    for job in page.jobs
                ]
            )
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
            error = (job.error or "").partition("\n")[0]
            return (error if len(error) <= 80 else f"{error[:79]}…") or "-"


@commands.command("show")
@argument("job_id", metavar="ID", help="The whole id, from `jobs list`.")
async def show(session: CliSession, *, job_id: str) -> None:
    """Show everything about one job: arguments, result, error, attempts, stages.

    \b
    Example:
      headrace jobs show 01980000-0000-7000-8000-000000000000
    """
    async with session.backend() as backend:
        job = await backend.get(job_id)
        found = await details(backend, job)
    if session.json:
        print_json(found)
    else:
        print_details(job, found, time_now(backend))


@commands.command("why")
@argument("job_id", metavar="ID", help="The whole id, from `jobs list`.")
async def why(session: CliSession, *, job_id: str) -> None:
    """Say why a job is not running, or what it is doing.

    \b
    Example:
      headrace jobs why 01980000-0000-7000-8000-000000000000
    """
    async with session.backend() as backend:
        job = await backend.get(job_id)
        reasons = list(await backend.why(job_id))
    if session.json:
        print_json({"job_id": job.id, "status": job.status, "reasons": reasons})
    else:
        for reason in reasons:
            print_line(reason)


@commands.command("watch")
@argument("job_id", metavar="ID", help="The whole id, from `jobs list`.")
@click.option("--timeout", metavar="SPAN", help="Give up after: 30s, 10m, …")
async def watch_job(session: CliSession, *, job_id: str, timeout: str | None) -> int:
    """Follow a job until it is finished. The exit code is 1 if it did not complete.

    With --json each change is one line of JSON.

    \b
    Example:
      headrace jobs watch 01980000-0000-7000-8000-000000000000 --timeout 10m
    """
    return await watch(session, job_id, timeout)


for each in (cancel, retry, signal):
    commands.add_command(each)
