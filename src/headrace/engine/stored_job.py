"""A job as it is right after it was stored."""

from __future__ import annotations

from datetime import datetime, timedelta

from headrace.model.job import Job, NewJob
from headrace.model.status import State
from headrace.model.times import kept_delay, moment_of


def stored(job: NewJob, now: datetime, *, job_id: str | None = None) -> Job:
    """Return the job as it is right after it was stored, without reading it back."""
    due = now
    if job.run_at is not None:
        due = moment_of(job.run_at)
    elif job.delay:
        due = now + timedelta(seconds=kept_delay(job.delay))
    # No more than 15 keywords, and the others where they differ: with more, Python makes a
    # dictionary of them, at the cost of all the rest together.
    made = Job(
        id=job_id or job.id,
        task=job.task,
        queue=job.queue,
        state=State.SCHEDULED if due > now else State.READY if job.lane is None else State.WAITING,
        args_json=job.args,
        priority=job.priority,
        width=job.width,
        hold=job.hold,
        source=job.source,
        max_attempts=job.max_attempts,
        timeout=job.timeout,
        on_crash=job.on_crash,
        created_at=now,
        run_at=due,
    )
    if job.lane is not None:
        made.lane = job.lane
    if job.key is not None:
        made.key = job.key
    if job.meta is not None:
        made.meta_json = job.meta
    if job.parent is not None:
        made.parent, made.group = job.parent, job.group
    if job.expires_at is not None:
        made.expires_at = moment_of(job.expires_at)
    elif job.expires_in is not None:
        made.expires_at = now + timedelta(seconds=kept_delay(job.expires_in))
    return made
