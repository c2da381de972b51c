"""How far a run is: each step with its state. And how a run is begun again from a step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from headrace.engine.base import Engine
from headrace.errors import InvalidInput, JobConflict, UnknownWorkflow
from headrace.job_tree import rerun_without
from headrace.model.durable.entries import CHILDREN, STAGE, StageRecord
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.workflows.model import Step, Workflow
from headrace.workflows.run import TASK, StepEnd, child_ids, get_all

StepStatus = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]


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


async def look(engine: Engine, job: Job) -> RunView:
    """How far a run is."""
    workflow, params = parts_of(job)
    kept = {entry.name: entry for entry in await engine.entries(job.id, STAGE)}
    begun = {entry.name: entry for entry in await engine.entries(job.id, CHILDREN)}
    steps = [
        await _view(engine, job, step, kept.get(step.id), begun.get(step.id))
        for step in workflow.steps
    ]
    return RunView(
        job_id=job.id,
        workflow_id=workflow.id,
        version=workflow.version,
        status=job.status.value,
        steps=steps,
        params=params,
        result=job.result,
        error=job.error,
    )


def parts_of(job: Job) -> tuple[Workflow, dict[str, Any]]:
    """The workflow that a run began with, and its parameters."""
    if job.task != TASK:
        raise UnknownWorkflow(f"job {job.id} runs {job.task!r}, not a workflow")
    return msgspec.convert(job.args["workflow"], Workflow), job.args["params"]


async def begin_again(engine: Engine, job: Job, from_step: str | None) -> list[str]:
    """Run a finished run again: from this step and all that follow from it, or else what did not
    complete. Returns the steps that will be done anew; the others keep what they have.
    """
    workflow, _ = parts_of(job)
    if not job.status.final:
        raise JobConflict(f"run {job.id} is {job.status}; it can be begun again when it is over")
    entries = await engine.entries(job.id)
    if from_step is None:
        kept = {entry.name: entry for entry in entries if entry.kind == STAGE}
        anew = {step.id for step in workflow.steps if not _completed(kept.get(step.id))}
        # What was passed over may be needed now, because what it waited for is done anew.
        anew |= {after for name in anew for after in workflow.after(name)}
    elif workflow.step(from_step) is None:
        known = ", ".join(step.id for step in workflow.steps)
        raise InvalidInput(f'workflow "{workflow.id}" has no step "{from_step}"; it has: {known}')
    else:
        anew = workflow.after(from_step)
    forgotten = [
        entry for entry in entries if entry.kind in (STAGE, CHILDREN) and entry.name in anew
    ]
    if not await rerun_without(engine, job, forgotten):
        raise JobConflict(f"run {job.id} was restarted by another caller")
    return [step.id for step in workflow.steps if step.id in anew]


def _completed(entry: StoredEntry | None) -> bool:
    end = None if entry is None else _end_of(entry)
    return end is not None and end.status == "completed"


def _end_of(entry: StoredEntry) -> StepEnd:
    record = msgspec.json.decode(entry.body, type=StageRecord)
    if record.artifact is not None:
        return StepEnd("completed")  # only outputs are large
    return msgspec.json.decode(record.value, type=StepEnd)


async def _view(
    engine: Engine,
    job: Job,
    step: Step,
    kept: StoredEntry | None,
    begun: StoredEntry | None,
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
    if kept is not None:
        end = _end_of(kept)
        return StepView(
            status=end.status,
            done=len(ids),
            ended_at=kept.at,
            error=end.error,
            output=end.output,
            **about,
        )
    if begun is None:
        return StepView(status="cancelled" if job.status.final else "pending", **about)
    jobs = await get_all(engine, ids)
    done = sum(1 for each in jobs if each.status.final)
    return StepView(status="cancelled" if job.status.final else "running", done=done, **about)
