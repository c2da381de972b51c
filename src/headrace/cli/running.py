"""`headrace running`: what runs now, and what waits."""

from __future__ import annotations

import os
from typing import Any

from headrace.app import App
from headrace.cli.command import command, group
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.session import Session
from headrace.cli.words import plural, span
from headrace.engine.open import redacted
from headrace.errors import InvalidSetting
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status

commands = group("What runs now, and what waits.")

PAGE = 500


@command(commands, "running")
async def running(session: Session) -> None:
    """Show what runs now and what waits.

    \b
    Examples:
      headrace running
      headrace running --json | jq .data.summary
    """
    remote = os.environ.get("API_URL")
    if remote and session.url is None:
        raise InvalidSetting(
            f"API_URL is set to {redacted(remote)!r}, but this version cannot read a remote "
            "server: it reads the engine itself. Unset API_URL, or name the engine with --url"
        )
    async with session.store() as app:
        jobs = await _running(app)
        queues = await app.engine.queues()
        now = app.clock.utcnow()
    queued = {queue.name: queue.waiting + queue.ready for queue in queues}
    if session.json:
        print_json(
            {
                "success": True,
                "data": {
                    "running": [_entry(job, now.timestamp()) for job in jobs],
                    "queued": queued,
                    "summary": {
                        "running_count": len(jobs),
                        "queued_count": sum(queued.values()),
                    },
                },
            }
        )
        return
    if jobs:
        print_table(
            ("ID", "QUEUE", "TASK", "RUNS FOR", "STAGE", "PROGRESS", "WORKER"),
            [
                (
                    job.id,
                    job.queue,
                    job.task,
                    span(_elapsed(job, now.timestamp())),
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


async def _running(app: App) -> list[Job]:
    jobs: list[Job] = []
    cursor = None
    while True:
        page = await app.list(JobFilter(statuses=(Status.RUNNING,)), cursor=cursor, limit=PAGE)
        jobs += page.jobs
        cursor = page.cursor
        if cursor is None:
            return sorted(jobs, key=lambda job: (job.started_at is None, job.started_at, job.id))


def _entry(job: Job, now: float) -> dict[str, Any]:
    return {
        "platform": job.queue,
        "job_id": job.id,
        "workflow_id": job.meta.get("workflow_id"),
        "started_at": job.started_at,
        "elapsed_seconds": round(_elapsed(job, now), 3),
    }


def _elapsed(job: Job, now: float) -> float:
    return 0.0 if job.started_at is None else max(now - job.started_at.timestamp(), 0.0)
