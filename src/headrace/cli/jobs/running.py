"""`headrace running`: what runs now, and what waits."""

from __future__ import annotations

import click

from headrace.cli.backend import running_now
from headrace.cli.command import Command
from headrace.cli.formatting import plural, span
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.session import Session


@click.command("running", cls=Command)
async def running(session: Session) -> None:
    """Show what runs now and what waits.

    With API_URL it asks that server.

    \b
    Examples:
      headrace running
      headrace running --json | jq .data.summary
    """
    async with session.backend() as backend:
        found = await running_now(backend, await backend.queues())
    if session.json:
        print_json(found.answer())
        return
    jobs, queued = found.jobs, found.queued
    if jobs:
        print_table(
            ("ID", "QUEUE", "TASK", "RUNS FOR", "STAGE", "PROGRESS", "WORKER"),
            [
                (
                    job.id,
                    job.queue,
                    job.task,
                    span(found.elapsed(job)),
                    job.stage or "-",
                    f"{job.progress:.0f}%",
                    job.worker or "-",
                )
                for job in jobs
            ],
            right=("RUNS FOR", "PROGRESS"),
        )
        print_line()
    waiting = ", ".join(f"{name}: {count:,}" for name, count in queued.items() if count)
    print_line(f"{plural(len(jobs), 'job')} running, {sum(queued.values()):,} queued")
    if waiting:
        print_line(f"queued  {waiting}")
