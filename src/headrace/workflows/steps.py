"""How far a run is: each step with its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from headrace.engine.base import Engine
from headrace.job_tree import child_ids
from headrace.model.durable.entries import CHILDREN
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.workflows.model import Step
from headrace.workflows.run import get_all, parts_of
from headrace.workflows.sealed import shown_result
from headrace.workflows.step_ends import Ends, StepEnd

StepStatus = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]
# More unfinished jobs of a step than this are not read one by one, unless it has to be exact.
FEW = 100
_UNFINISHED = tuple(status for status in Status if not status.final)


class StepView(msgspec.Struct, kw_only=True, frozen=True):
    """One step of a run. `done` of its `jobs` jobs are over; a step without `each` has one, and
    `job_id` is its id. An output that was too large to be kept with the run is left out.
    """

    id: str
    task: str
    status: StepStatus
    needs: tuple[str, ...] = ()
    jobs: int = 0
    done: int = 0
    job_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    output: Any = None


class RunView(msgspec.Struct, kw_only=True, frozen=True):
    """A run with its steps, in the order of the workflow."""

    job_id: str
    workflow_id: str
    version: int | str
    status: str
    steps: list[StepView]
    params: dict[str, Any]
    result: Any = None
    error: str | None = None


async def look(engine: Engine, job: Job, *, exact: bool = True) -> RunView:
    """How far a run is."""
    workflow, params = parts_of(job)
    entries = await engine.entries(job.id)
    ends = await Ends.read(engine, job.id, entries, job.opener)
    begun = {entry.name: entry for entry in entries if entry.kind == CHILDREN}
    steps = [
        await _view(engine, job, step, ends.get(step.id), begun.get(step.id), exact=exact)
        for step in workflow.steps
    ]
    return RunView(
        job_id=job.id,
        workflow_id=workflow.id,
        version=workflow.version,
        status=job.status.value,
        steps=steps,
        params=params,
        result=shown_result(job),
        error=job.error_message,
    )


async def _view(
    engine: Engine,
    job: Job,
    step: Step,
    ended: tuple[StepEnd, datetime] | None,
    begun: StoredEntry | None,
    *,
    exact: bool,
) -> StepView:
    ids = [] if begun is None else child_ids(begun)
    about: Mapping[str, Any] = {
        "id": step.id,
        "task": step.task,
        "needs": step.depends_on,
        "jobs": len(ids),
        "job_id": ids[0] if ids and step.each is None else None,
        "started_at": None if begun is None else begun.at,
    }
    if ended is not None:
        end, at = ended
        return StepView(
            status=end.status,
            done=len(ids),
            ended_at=at,
            error=end.error,
            output=end.output,
            **about,
        )
    if begun is None:
        return StepView(status="cancelled" if job.status.final else "pending", **about)
    done = await _done(engine, job, step, ids, exact=exact)
    return StepView(status="cancelled" if job.status.final else "running", done=done, **about)


async def _done(engine: Engine, job: Job, step: Step, ids: Sequence[str], *, exact: bool) -> int:
    if exact or len(ids) <= FEW:
        return sum(1 for each in await get_all(engine, ids) if each.status.final)
    wanted = JobFilter(parent=job.id, group=step.id, statuses=_UNFINISHED)
    return max(0, len(ids) - (await engine.count_jobs(wanted)).count)
