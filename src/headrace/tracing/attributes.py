"""What spans tell of jobs, by OpenTelemetry's conventions for messaging where they fit. Never
arguments or results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.job import ClaimedJob, NewJob

SYSTEM = "headrace"


def of_new_job(job: NewJob) -> dict[str, Any]:
    """Return what is told of a job that is enqueued."""
    return {
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "headrace.task": job.task,
    }


def of_enqueuing(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a call that enqueues, with what is told of its jobs."""
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        **about,
    }


def of_attempt(job: ClaimedJob) -> dict[str, Any]:
    """Return what is told of an attempt when it begins."""
    about: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "headrace.task": job.task,
        "headrace.attempt": job.attempt,
        "headrace.run": job.token,
        "headrace.wait_seconds": job.wait,
    }
    if job.lane is not None:
        about["headrace.lane"] = job.lane
    return about
