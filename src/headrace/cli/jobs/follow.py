"""Following one job until it is finished."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headrace.cli.backend import time_now
from headrace.cli.errors import FAILED, OK, notice
from headrace.cli.formatting import parse_span, span, took
from headrace.cli.output import print_json_line, print_line
from headrace.cli.session import Session
from headrace.errors import EngineUnavailable, JobNotFound, ResultTimeout
from headrace.model.job import Job
from headrace.model.status import Status

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

SHORTEST = 0.05
LONGEST = 1.0


async def watch(session: Session, job_id: str, timeout: str | None) -> int:
    """Print each change; 0 only if the job completed."""
    limit = None if timeout is None else time.monotonic() + parse_span("--timeout", timeout)
    wait = SHORTEST
    async with session.backend() as backend:
        job = await backend.get(job_id)
        _tell(session, backend, job)
        if job.status is Status.PENDING:
            for reason in await backend.why(job_id):
                notice(f"note: {reason}")
        while not job.status.final:
            if limit is not None and time.monotonic() > limit:
                raise ResultTimeout(
                    f"job {job.id} is still {job.status} after {timeout}; it goes on"
                )
            await asyncio.sleep(wait)
            wait = min(wait * 1.3, LONGEST)
            before, job = job, await _again(backend, job)
            if face(job) != face(before):
                _tell(session, backend, job)
                wait = SHORTEST
    return OK if job.status is Status.COMPLETED else FAILED


async def _again(backend: Backend, job: Job) -> Job:
    """The job as it is now; as it was, while the engine is away."""
    try:
        return await backend.get(job.id)
    except EngineUnavailable as error:
        notice(f"note: {error}; trying again")
        await asyncio.sleep(LONGEST)
        return job
    except JobNotFound:
        raise JobNotFound(f"job {job.id} was pruned while it was watched") from None


def _tell(session: Session, backend: Backend, job: Job) -> None:
    now = time_now(backend)
    if session.json:
        print_json_line(job.to_dict())
    else:
        print_line(f"{now.astimezone():%H:%M:%S}  {describe(job, now)}")


def face(job: Job) -> tuple[Any, ...]:
    """What has to differ for a change to be worth telling."""
    return (job.status, job.attempt, job.stage, round(job.progress), job.message, job.error)


def describe(job: Job, now: datetime) -> str:
    """A job's status with what matters in it, in one line."""
    return f"{job.status.value:<9}  {_told(job, now)}"


def _told(job: Job, now: datetime) -> str:
    attempt = f"attempt {job.attempt} of {job.max_attempts}"
    error = f"{job.error_type}: {job.error}" if job.error_type else job.error or "no reason kept"
    match job.status:
        case Status.RUNNING:
            parts = [attempt, job.stage, job.message, f"{job.progress:.0f}%"]
            return ", ".join(part for part in parts if part)
        case Status.SCHEDULED if job.attempt:
            left = (job.run_at - now).total_seconds()
            again = f"again in {span(left)}" if left > 0 else "again now"
            return f"{attempt} failed, {again}: {error}"
        case Status.SCHEDULED:
            return f"due {job.run_at:%Y-%m-%d %H:%M:%S} UTC"
        case Status.PENDING:
            return f"in queue {job.queue}" + (f", lane {job.lane}" if job.lane else "")
        case Status.COMPLETED:
            return f"in {took(job.started_at, job.completed_at)}, {attempt}"
        case _:
            return f"{attempt}: {error}"
