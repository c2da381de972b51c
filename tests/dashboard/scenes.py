"""Things that go wrong, for pages that tell of them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.engine.base import Engine
from headrace.model.ids import new_id
from headrace.model.outcome import Failed, Failure, Settlement
from headrace.model.worker import WorkerInfo
from tests.support.verbs import a_job, a_worker, claim


async def failed_jobs(
    engine: Engine, task: str, errors: Sequence[tuple[str, str]], *, queue: str = "mail"
) -> list[str]:
    """Jobs of a task that failed for good, each with its type of error and its message."""
    new = [a_job(task=task, queue=queue) for _ in errors]
    await engine.insert(new)
    worker = await a_worker(engine, "failing")
    jobs = await claim(engine, worker, len(new), [queue])
    assert [job.id for job in jobs] == [job.id for job in new]
    settled = zip(jobs, errors, strict=True)
    await engine.exchange(
        [Settlement(job.id, job.token, Failed(Failure(*error))) for job, error in settled]
    )
    await engine.retire(worker)
    return [job.id for job in new]


def unreachable(count: int) -> list[tuple[str, str]]:
    """Errors of one kind, each with a message of its own."""
    return [("ConnectionError", f"cannot reach 10.0.0.{number}:25") for number in range(count)]


async def lost_worker(engine: Engine, name: str, lease: float = 0.05) -> str:
    """A worker that is lost as soon as its short lease is over."""
    info = WorkerInfo(id=new_id(), name=name, host="here", pid=7, version="0")
    await engine.register(info, lease)
    return info.id
