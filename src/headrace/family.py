"""Jobs and the jobs that they made: what is done to one may have to reach the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from headrace.engine.base import Engine
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.model.views import Delivery

PAGE = 500
# Cancelled ones as well: a cancel that was cut short is completed by repeating it.
_REACHED = JobFilter(statuses=(Status.SCHEDULED, Status.PENDING, Status.RUNNING, Status.CANCELLED))


async def cancel(engine: Engine, ids: Sequence[str], reason: str = "cancelled") -> dict[str, bool]:
    """Cancel jobs, their unfinished children, the children of those, and so on; then wake parents
    that waited for one of these. The answer is about `ids`, as the engine's. May be repeated.
    """
    answer = await engine.cancel(ids, reason)
    await cancel_children(engine, ids)
    await wake_parents(engine, [job_id for job_id, now in answer.items() if now])
    return answer


async def cancel_children(engine: Engine, ids: Sequence[str]) -> int:
    """Cancel the unfinished children of cancelled jobs, and so on. Answers how many there were."""
    cancelled = 0
    parents = [(job_id, f"its parent {job_id} was cancelled") for job_id in ids]
    while parents:
        parent, reason = parents.pop()
        async for page in children(engine, parent):
            unfinished = [job.id for job in page if not job.status.final]
            answer = await engine.cancel(unfinished, reason) if unfinished else {}
            cancelled += len(answer)
            # One that was never run has made none.
            parents += [
                (job.id, reason) for job in page if job.token > 0 or answer.get(job.id) is False
            ]
    return cancelled


async def wake_parents(engine: Engine, ids: Sequence[str]) -> None:
    """Wake those who waited for jobs that have ended."""
    for start in range(0, len(ids), PAGE):
        jobs = await engine.get(ids[start : start + PAGE])
        parents = list(dict.fromkeys(job.parent for job in jobs if job.parent is not None))
        if parents:
            await engine.wake(parents)


async def children(
    engine: Engine, parent: str, *, filter: JobFilter = _REACHED
) -> AsyncIterator[list[Job]]:
    """The children of a job, page by page."""
    cursor: str | None = None
    wanted = msgspec.structs.replace(filter, parent=parent)
    while True:
        page = await engine.list_jobs(wanted, cursor=cursor, limit=PAGE)
        if page.jobs:
            yield page.jobs
        cursor = page.cursor
        if cursor is None:
            return


async def deliver(engine: Engine, job_id: str, event: str, body: bytes) -> Delivery:
    """Deliver an event to a job, and wake it if that is what it waits for. May be repeated."""
    delivery = await engine.signal(job_id, event, body)
    if delivery in ("delivered", "already"):
        await engine.wake([job_id])
    return delivery
