"""Short words for tests of rates."""

from __future__ import annotations

from typing import Any

from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob, NewJob
from headrace.model.limits.rate import Rate, as_rate
from tests.support.verbs import a_job, claim, complete, the_job

# Slow enough that it does not matter how fast the machine is.
MINUTE = 60.0


def rated(rate: str | Rate = "1/m", burst: int | None = None, **fields: Any) -> NewJob:
    """A job of lane "h", in which many may run at once, that counts by this rate."""
    wide = {"lane": "h", "width": 1_000, "hold": False}
    return a_job(**{**wide, "rate": as_rate(rate, burst), **fields})


async def insert(engine: Engine, *jobs: NewJob) -> list[str]:
    """Store these; answer their ids."""
    return [each.id for each in await engine.insert(jobs)]


async def started(engine: Engine, worker: str, limit: int = 100, **fields: Any) -> list[str]:
    """The ids of those that a claim starts now."""
    answer = await engine.exchange([], worker_id=worker, limit=limit, **fields)
    return [job.id for job in answer.jobs]


async def run_all(engine: Engine, worker: str) -> list[ClaimedJob]:
    """Claim and complete what may start now."""
    jobs = await claim(engine, worker, 1_000)
    for job in jobs:
        assert await complete(engine, job)
    return jobs


async def parked(engine: Engine, job_id: str) -> bool:
    """Whether a job waits for its lane to let it start."""
    return (await the_job(engine, job_id)).parked
