"""Following one job until it is finished."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Any

from headrace.cli.errors import FAILED, OK, tell
from headrace.cli.output import print_json_line, print_line
from headrace.cli.session import Session
from headrace.cli.words import parse_span, span, took
from headrace.errors import JobNotFound, ResultTimeout
from headrace.model.job import Job
from headrace.model.status import Status

SHORTEST = 0.05
LONGEST = 1.0


async def watch(session: Session, job_id: str, timeout: str | None) -> int:
    """Print each change; 0 only if the job completed."""
    limit = None if timeout is None else time.monotonic() + parse_span("--timeout", timeout)
    seen: tuple[Any, ...] | None = None
    wait = SHORTEST
    async with session.store() as app:
        while True:
            try:
                job = await app.get(job_id)
            except JobNotFound as error:
                if seen is None:
                    raise
                raise JobNotFound(f"job {job_id} was pruned while it was watched") from error
            now = face(job)
            if now != seen:
                moment = app.clock.utcnow()
                if session.json:
                    print_json_line(job.to_dict())
                else:
                    print_line(f"{moment.astimezone():%H:%M:%S}  {describe(job, moment)}")
                if seen is None and job.status is Status.PENDING:
                    for reason in await app.why(job_id):
                        tell(f"note: {reason}")
                seen, wait = now, SHORTEST
            if job.status.final:
                return OK if job.status is Status.COMPLETED else FAILED
            if limit is not None and time.monotonic() > limit:
                raise ResultTimeout(
                    f"job {job.id} is still {job.status} after {timeout}; it goes on"
                )
            await asyncio.sleep(wait)
            wait = min(wait * 1.3, LONGEST)


def face(job: Job) -> tuple[Any, ...]:
    """What has to differ for a change to be worth telling."""
    return (job.status, job.attempt, job.stage, round(job.progress), job.message, job.error)


def describe(job: Job, now: datetime) -> str:
    """A job's status with what matters in it, in one line."""
    attempt = f"attempt {job.attempt} of {job.max_attempts}"
    match job.status:
        case Status.RUNNING:
            parts = [attempt, job.stage, job.message, f"{job.progress:.0f}%"]
            told = ", ".join(part for part in parts if part)
            return f"{job.status.value:<9}  {told}"
        case Status.SCHEDULED if job.attempt:
            error = f"{job.error_type}: {job.error}" if job.error_type else job.error
            left = (job.run_at - now).total_seconds()
            again = f"again in {span(left)}" if left > 0 else "again now"
            return f"{job.status.value:<9}  {attempt} failed, {again}: {error}"
        case Status.SCHEDULED:
            return f"{job.status.value:<9}  due {job.run_at:%Y-%m-%d %H:%M:%S} UTC"
        case Status.PENDING:
            place = f", lane {job.lane}" if job.lane else ""
            return f"{job.status.value:<9}  in queue {job.queue}{place}"
        case Status.COMPLETED:
            return f"{job.status.value:<9}  in {took(job.started_at, job.completed_at)}, {attempt}"
        case _:
            error = f"{job.error_type}: {job.error}" if job.error_type else job.error or ""
            return f"{job.status.value:<9}  {attempt}: {error}"
