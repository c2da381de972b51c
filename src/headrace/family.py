"""Jobs and the jobs that they made: what is done to one may have to reach the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from headrace.engine.base import Engine
from headrace.errors import InvalidInput, JobConflict
from headrace.model.awaited import EVENT
from headrace.model.job import Job, JobFilter
from headrace.model.kept import CHILDREN, SLEEP, STAGE, WAIT, stage_view
from headrace.model.status import ACTIVE, Status
from headrace.model.views import Delivery

PAGE = 500
SHOWN = 20
# Cancelled ones as well: a cancel that was cut short is completed by repeating it.
_REACHED = JobFilter(statuses=(Status.SCHEDULED, Status.PENDING, Status.RUNNING, Status.CANCELLED))


_STEPS = (STAGE, SLEEP, WAIT, CHILDREN, EVENT)


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


async def forget_from(engine: Engine, job: Job, stage: str) -> None:
    """Forget what a finished job has kept from a stage on, in the order it was first written, so
    that it is done again: stages, sleeps, waits, events that came since, and children, which are
    cancelled if they have not ended. Without a key, `stage` is the first of its keys.
    """
    entries = await engine.entries(job.id)
    first = next(
        (
            index
            for index, entry in enumerate(entries)
            if entry.kind == STAGE and _is_stage(entry.name, stage)
        ),
        None,
    )
    if not job.status.final:
        raise JobConflict(
            f"job {job.id} is {job.status}; only a finished job can be run again from a stage"
        )
    if first is None:
        stages = [stage_view(entry) for entry in entries if entry.kind == STAGE]
        if _is_stage(job.stage or "", stage) and job.stage not in {each.done for each in stages}:
            return  # it ended in this stage, and has kept nothing of it
        names = [each.name for each in stages]
        known = ", ".join(map(repr, names[:SHOWN])) or "none"
        more = f" … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise InvalidInput(f"job {job.id} has no stage {stage!r}; it has: {known}{more}")
    after = entries[first:]
    for group in [entry.name for entry in after if entry.kind == CHILDREN]:
        await cancel_group(engine, job.id, group)
    forgotten = [(entry.kind, entry.name) for entry in after if entry.kind in _STEPS]
    if not await engine.forget(job.id, forgotten):
        raise JobConflict(f"job {job.id} is being run again already")


def _is_stage(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}[")


async def cancel_group(engine: Engine, parent: str, group: str) -> None:
    """Cancel the children of a group that have not ended, because others take their place."""
    unfinished = JobFilter(statuses=tuple(sorted(ACTIVE)), group=group)
    reason = f"its parent {parent} was run again from an earlier stage"
    async for page in children(engine, parent, filter=unfinished):
        await cancel(engine, [job.id for job in page], reason)


async def deliver(engine: Engine, job_id: str, event: str, body: bytes) -> Delivery:
    """Deliver an event to a job, and wake it if that is what it waits for. May be repeated."""
    delivery = await engine.signal(job_id, event, body)
    if delivery in ("delivered", "already"):
        await engine.wake([job_id])
    return delivery
