"""Short words for conformance tests: make a job, claim, finish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.job import ClaimedJob, Job, NewJob
from headrace.model.outcome import Completed, Failed, Failure, Outcome, Retry, Settlement
from headrace.model.status import Status
from headrace.model.worker import WorkerInfo

LEASE = 30.0


def a_job(**fields: Any) -> NewJob:
    """A valid job; name what matters to the test."""
    return NewJob(**{"id": new_id(), "task": "work", "queue": "default", **fields})


async def enqueue(engine: Engine, **fields: Any) -> str:
    """Insert one job and answer its id."""
    [inserted] = await engine.insert([a_job(**fields)])
    return inserted.id


async def a_worker(engine: Engine, name: str = "worker", **fields: Any) -> str:
    """Register a worker and answer its id."""
    info = WorkerInfo(
        **{"id": new_id(), "name": name, "host": "here", "pid": 1, "version": "0", **fields}
    )
    await engine.register(info, LEASE)
    return info.id


async def claim(
    engine: Engine, worker: str, limit: int = 1, queues: Sequence[str] | None = None
) -> list[ClaimedJob]:
    """Claim without settling anything."""
    return (await engine.exchange([], worker_id=worker, queues=queues, limit=limit)).jobs


async def settle(engine: Engine, job: ClaimedJob, outcome: Outcome) -> bool:
    """Record an outcome; False if it was refused."""
    answer = await engine.exchange([Settlement(job.id, job.token, outcome)])
    return job.id not in answer.refused


async def complete(engine: Engine, job: ClaimedJob, result: bytes = b"null") -> bool:
    """The handler returned."""
    return await settle(engine, job, Completed(result))


async def retry(engine: Engine, job: ClaimedJob, delay: float = 0.0) -> bool:
    """The attempt failed, another will follow."""
    return await settle(engine, job, Retry(A_FAILURE, delay))


async def fail(engine: Engine, job: ClaimedJob) -> bool:
    """The job failed for good."""
    return await settle(engine, job, Failed(A_FAILURE))


async def the_job(engine: Engine, job_id: str) -> Job:
    """Read one job that must exist."""
    [job] = await engine.get([job_id])
    return job


async def status(engine: Engine, job_id: str) -> Status:
    """Read one job's status."""
    return (await the_job(engine, job_id)).status


A_FAILURE = Failure(type="ValueError", message="it broke")


async def fail_all(
    engine: Engine, kind: str = "ValueError", message: str = "it broke", *, limit: int = 500
) -> int:
    """Run whatever is ready, as a worker whose handlers all fail; answer how many there were."""
    worker = await a_worker(engine, "failing")
    count = 0
    while jobs := await claim(engine, worker, limit):
        outcome = Failed(Failure(type=kind, message=message))
        await engine.exchange([Settlement(job.id, job.token, outcome) for job in jobs])
        count += len(jobs)
    await engine.retire(worker)
    return count
