"""The job that the caller runs for, for log lines that do not name it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from headrace.model.job import ClaimedJob

# Set by workers whose log lines are JSON, or that make spans: see `ObservedExecutor`.
CURRENT_JOB: ContextVar[ClaimedJob | None] = ContextVar("headrace_job", default=None)


def about(job: ClaimedJob) -> dict[str, Any]:
    """Return what a log record has to know about a job, as its `extra`."""
    return {"job_id": job.id, "task": job.task, "queue": job.queue, "attempt": job.attempt}
