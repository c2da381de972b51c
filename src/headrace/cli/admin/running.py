"""`headrace running`: what runs now, and how much waits."""

from __future__ import annotations

import click

from headrace.cli.backend import running_now
from headrace.cli.command import Command
from headrace.cli.formatting import plural, span
from headrace.cli.output import Columns, print_json, print_line, print_table
from headrace.cli.session import CliSession
from headrace.model.job import Job


@click.command("running", cls=Command)
async def running(session: CliSession) -> None:
    """Show what runs now and what waits.

    With API_URL it asks that server.

      headrace running
      headrace running --json | jq .data.summary
    """
    async with session.backend() as backend:
        found = await running_now(backend, await backend.queues())
    if session.json:
        print_json(found.answer())
        return
    columns: Columns[Job] = {
        "ID": lambda job: job.id,
        "QUEUE": lambda job: job.queue,
        "TASK": lambda job: job.task,
        ">RUNS FOR": lambda job: span(found.elapsed(job)),
        "STAGE": lambda job: job.stage or "-",
        ">PROGRESS": lambda job: f"{job.progress:.0f}%",
        "WORKER": lambda job: job.worker or "-",
    }
    jobs, queued = found.jobs, found.queued
    if jobs:
        print_table(columns, jobs)
        print_line()
    waiting = ", ".join(f"{name}: {count:,}" for name, count in queued.items() if count)
    print_line(f"{plural(len(jobs), 'job')} running, {sum(queued.values()):,} queued")
    if waiting:
        print_line(f"queued  {waiting}")
