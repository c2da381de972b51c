"""Jobs and the jobs that they made: what is done to one may have to reach the others."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from headrace.engine.base import Engine
from headrace.engine.bounded_reads import parts
from headrace.errors import InvalidInput, JobConflict, RecordConflict
from headrace.model.durable.awaited import EVENT
from headrace.model.durable.entries import CHILDREN, SLEEP, STAGE, WAIT, ChildrenRecord, stage_view
from headrace.model.durable.writes import StoredEntry
from headrace.model.ids import new_id, nth_id
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.model.views import Delivery, Record, RecordChange

PAGE = 500
SHOWN = 20
# Cancelled ones as well: a cancel that was cut short is completed by repeating it.
_REACHED = JobFilter(statuses=(Status.SCHEDULED, Status.PENDING, Status.RUNNING, Status.CANCELLED))

REPLACED = "replaced-children"
"""Records of this kind tell what is left to do for children (`ReplacedChildren`)."""

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
    async for jobs in parts(engine, ids):
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


async def rerun_from(engine: Engine, job: Job, stage: str) -> None:
    """Run a finished job again from a stage on, in the order it was first written: what was kept
    since is forgotten: stages, sleeps, waits, events that came since, and children, which are
    cancelled if they have not ended. Without a key, `stage` is the first of its keys.
    """
    entries = await engine.entries(job.id)
    first = next(
        (
            index
            for index, entry in enumerate(entries)
            if entry.kind == STAGE and _is_stage(entry.name, stage)
        ),
        len(entries),
    )
    if not job.status.final:
        raise JobConflict(
            f"job {job.id} is {job.status}; only a finished job can be run again from a stage"
        )
    if first == len(entries):
        stages = [stage_view(entry) for entry in entries if entry.kind == STAGE]
        # One that ended in this stage has kept nothing of it.
        if not _is_stage(job.stage or "", stage) or job.stage in {each.done for each in stages}:
            names = [each.name for each in stages]
            known = ", ".join(map(repr, names[:SHOWN])) or "none"
            more = f" … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            raise InvalidInput(f"job {job.id} has no stage {stage!r}; it has: {known}{more}")
    forgotten = [entry for entry in entries[first:] if entry.kind in _STEPS]
    if not await rerun_without(engine, job, forgotten):
        raise JobConflict(f"job {job.id} is being run again already")


def _is_stage(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}[")


class ReplacedChildren(msgspec.Struct, omit_defaults=True):
    """What is left to do for a job that was run again: children, by their groups, in whose place it
    makes others, and children that it waits for once more (`again`, with the tokens they had).
    """

    parent: str
    groups: dict[str, ChildrenRecord]
    again: dict[str, int] = {}


async def rerun_without(
    engine: Engine,
    job: Job,
    forgotten: Sequence[StoredEntry],
    again: Mapping[str, int] | None = None,
) -> bool:
    """Run a finished job again without these of its entries, and cancel children that others
    take the place of. False, and nothing has happened, if somebody else has run it again first.

    `again` are finished children, with their tokens, that are run again as well. With it, even if
    it is empty, the job itself can look up what is left to do by its own id (`complete_rerun`).

    Who is accepted is decided before any child is touched. From then on the job may run and make
    new children in groups of the same names, so those to be cancelled are known by their ids. They
    are written down in the same step: if this is cut short, upkeep completes it.
    """
    replaced = ReplacedChildren(
        job.id,
        {
            entry.name: msgspec.json.decode(entry.body, type=ChildrenRecord)
            for entry in forgotten
            if entry.kind == CHILDREN
        },
        dict(again or {}),
    )
    record = None
    if replaced.groups or replaced.again:
        key = new_id() if again is None else job.id
        record = RecordChange(REPLACED, key, msgspec.json.encode(replaced))
        if again is not None and (left := await engine.record_get(REPLACED, job.id)) is not None:
            # It will be overwritten. What it says of children to run again is out of date.
            await _cancel_replaced(engine, _decode_replaced(left))
    names = [(entry.kind, entry.name) for entry in forgotten]
    if not await engine.rerun_without(job.id, names, token=job.token, record=record):
        return False
    if record is not None:
        await complete_rerun(engine, record.key)
    return True


async def complete_rerun(engine: Engine, key: str) -> bool:
    """Do what is left to do for a job that was run again, then forget it. False if there is
    nothing. May be repeated, also at the same time.
    """
    record = await engine.record_get(REPLACED, key)
    if record is None:
        return False
    replaced = _decode_replaced(record)
    if replaced.again:
        await _run_again(engine, replaced)
    await _cancel_replaced(engine, replaced)
    # Unless it was run again once more since.
    with contextlib.suppress(RecordConflict):
        await engine.record_delete(REPLACED, key, version=record.version)
    return True


def _decode_replaced(record: Record) -> ReplacedChildren:
    return msgspec.json.decode(record.body, type=ReplacedChildren)


async def _run_again(engine: Engine, replaced: ReplacedChildren) -> None:
    """Run children again whose parent waits for them: not if it was cancelled since."""
    if all(job.status.final for job in await engine.get([replaced.parent])):
        return
    tokens = list(replaced.again.items())
    for start in range(0, len(tokens), PAGE):
        await engine.rerun_unchanged(dict(tokens[start : start + PAGE]))
    if any(job.status is Status.CANCELLED for job in await engine.get([replaced.parent])):
        await cancel_children(engine, [replaced.parent])


async def _cancel_replaced(engine: Engine, replaced: ReplacedChildren) -> None:
    """Cancel replaced children that have not ended. May be repeated."""
    reason = f"its parent {replaced.parent} was run again from an earlier stage"
    for group, made in replaced.groups.items():
        ids = {nth_id(made.base, index) for index in range(made.count)}
        reached = msgspec.structs.replace(_REACHED, group=group)
        async for page in children(engine, replaced.parent, filter=reached):
            # Of those that are cancelled already, children may be left. One that was never run has
            # made none.
            some = [
                job.id for job in page if job.id in ids and (not job.status.final or job.token > 0)
            ]
            if some:
                await cancel(engine, some, reason)


async def deliver(engine: Engine, job_id: str, event: str, body: bytes) -> Delivery:
    """Deliver an event to a job, and wake it if that is what it waits for. May be repeated."""
    delivery = await engine.signal(job_id, event, body)
    if delivery in ("delivered", "already"):
        await engine.wake([job_id])
    return delivery


def record_of(entry: StoredEntry) -> ChildrenRecord:
    """What is kept of children that were made together."""
    return msgspec.json.decode(entry.body, type=ChildrenRecord)


def child_ids(entry: StoredEntry) -> list[str]:
    """The ids of the children that were made together."""
    record = record_of(entry)
    return [nth_id(record.base, index) for index in range(record.count)]
