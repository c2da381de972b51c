"""How runs are begun again, and how jobs are retried that are steps of a run.

A step belongs to its run. What is asked for a job of a step is therefore done by the run: the step
is done once, whether the run, the job or both are retried, by one caller or by several.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from headrace import job_tree
from headrace.engine.base import Engine
from headrace.engine.bounded_reads import parts
from headrace.errors import InvalidInput, JobConflict
from headrace.job_tree import child_ids, record_of, rerun_without
from headrace.model.durable.entries import CHILDREN, STAGE
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.workflows.model import Workflow
from headrace.workflows.run import TASK, get_all, parts_of
from headrace.workflows.step_ends import Ends, output_stage

OTHER_QUEUES = (
    "job {} belongs to a workflow that uses other queues as well; retry it with a key for all of "
    "them"
)

Allowed = Callable[[Job], bool]


class RestartedRun(msgspec.Struct, frozen=True):
    """The steps that a run does anew, and the jobs of these that are run again themselves."""

    steps: list[str]
    jobs: frozenset[str]


class Retried(msgspec.Struct):
    """The ids of jobs that are run again, and why others are not, where there is a reason beside
    their status.
    """

    moved: list[str]
    refused: dict[str, str]


async def begin_again(engine: Engine, job: Job, from_step: str | None = None) -> RestartedRun:
    """Run a finished run again: from this step and all that follow from it, or else what keeps it
    from being complete. The other steps keep what they have. If it is refused, nothing is changed.

    Of a step that failed, the jobs that did not complete are run again, and those that did are
    not, unless what the step depends on is done anew: then it has other jobs.
    """
    workflow, _ = parts_of(job)
    if not job.status.final:
        raise JobConflict(f"run {job.id} is {job.status}; it can be begun again when it is over")
    entries = await engine.entries(job.id)
    again: dict[str, int] = {}
    same_jobs: set[str] = set()
    if from_step is None:
        begun = {entry.name: entry for entry in entries if entry.kind == CHILDREN}
        anew = _unfinished(workflow, job, await Ends.read(engine, job.id, entries))
        for step in workflow.steps:
            if step.id in anew & begun.keys() and anew.isdisjoint(step.depends_on):
                tokens = await _not_completed(engine, job, begun[step.id])
                if tokens is not None:
                    same_jobs.add(step.id)
                    again |= tokens
    elif workflow.step(from_step) is None:
        known = ", ".join(step.id for step in workflow.steps)
        raise InvalidInput(f'workflow "{workflow.id}" has no step "{from_step}"; it has: {known}')
    else:
        anew = workflow.after(from_step)
    stages = anew | {output_stage(name) for name in anew}
    forgotten = [
        entry
        for entry in entries
        if (entry.kind == STAGE and entry.name in stages)
        or (entry.kind == CHILDREN and entry.name in anew - same_jobs)
    ]
    if not await rerun_without(engine, job, forgotten, again):
        raise JobConflict(f"run {job.id} was restarted by another caller")
    return RestartedRun([step.id for step in workflow.steps if step.id in anew], frozenset(again))


def _unfinished(workflow: Workflow, job: Job, ends: Ends) -> set[str]:
    """The steps that a run has still to do, and all that follow from them.

    A step that may fail and did is over, others went on without it. Only if nothing else is left
    of a completed run, such steps are what it is begun again for.
    """
    may_fail = {step.id for step in workflow.steps if step.on_failure == "continue"}
    failed = {step.id for step in workflow.steps if ends.status(step.id) == "failed"}
    open_steps = {step.id for step in workflow.steps if ends.status(step.id) is None}
    first = failed if job.status is Status.COMPLETED else open_steps | (failed - may_fail)
    return {after for name in first for after in workflow.after(name)}


async def _not_completed(engine: Engine, run: Job, made: StoredEntry) -> dict[str, int] | None:
    """The finished jobs of a step that did not complete, with their tokens. None if not all of its
    jobs are known any more.
    """
    if not record_of(made).stored:
        return None
    ids = child_ids(made)
    jobs = await get_all(engine, ids)
    if len(jobs) < len(ids):
        return None
    for job in jobs:
        if job.cancel_requested and not job.status.final:
            raise JobConflict(
                f'run {run.id}: job {job.id} of step "{made.name}" was asked to stop and has not '
                "ended yet; begin the run again when it has"
            )
    return {
        job.id: job.token for job in jobs if job.status.final and job.status is not Status.COMPLETED
    }


async def retry_jobs(
    engine: Engine, jobs: Iterable[Job], allowed: Allowed | None = None
) -> Retried:
    """Run finished jobs again that were not run since they were read, and scheduled ones now. Runs
    go on with what keeps them from being complete, and so do the runs of failed steps, each once,
    if the caller is `allowed` to touch the run.
    """
    asked = list(jobs)
    answer = Retried([], {})
    moved: set[str] = set()
    found = await _whole(engine, [job for job in asked if job.status.final])
    ended = [
        job
        for job in asked
        if job.status.final and (job.id not in found or _same(job, found[job.id]))
    ]
    runs = {job.id: found[job.id] for job in ended if job.task == TASK and job.id in found}
    for run_id in [each.id for each in runs.values() if allowed is not None and not allowed(each)]:
        del runs[run_id]
        answer.refused[run_id] = OTHER_QUEUES.format(run_id)
    alone: dict[str, int] = {}
    members: dict[str, list[str]] = {}
    families: dict[str, Family] = {}
    for job in ended:
        run = None if job.task == TASK else found.get(job.parent or "")
        if run is None or run.task != TASK:
            if job.task != TASK:
                alone[job.id] = job.token
            continue
        if run.id not in families:
            families[run.id] = await Family.of(engine, run)
        family = families[run.id]
        if reason := family.refusal(job, asked=run.id in runs):
            answer.refused[job.id] = reason
        elif not family.needs(job):
            alone[job.id] = job.token
        elif allowed is not None and not allowed(run):
            answer.refused[job.id] = OTHER_QUEUES.format(job.id)
        else:
            runs.setdefault(run.id, run)
            members.setdefault(run.id, []).append(job.id)
    now = [job.id for job in asked if not job.status.final]
    moved.update(await engine.rerun(now) if now else ())
    moved.update(await engine.rerun_unchanged(alone) if alone else ())
    for run in runs.values():
        try:
            await begin_again(engine, run)
        except JobConflict as error:
            answer.refused |= dict.fromkeys([run.id, *members.get(run.id, ())], str(error))
        else:
            moved.update([run.id, *members.get(run.id, ())])
    answer.moved = [job.id for job in asked if job.id in moved]
    return answer


async def rerun_from(engine: Engine, job: Job, stage: str) -> None:
    """Run a finished job again from a stage of its handler. If it is a failed step, its run goes on
    with it, and with what else did not complete.
    """
    run = (await _whole(engine, [job])).get(job.parent or "")
    family = None
    if job.status.final and run is not None and run.task == TASK:
        family = await Family.of(engine, run)
        if reason := family.refusal(job, asked=False):
            raise JobConflict(reason)
    await job_tree.rerun_from(engine, job, stage)
    if family is not None and family.needs(job):
        # Somebody else may have begun it again meanwhile: then it waits for this job as well.
        with contextlib.suppress(JobConflict):
            await begin_again(engine, family.run)


async def _whole(engine: Engine, jobs: Sequence[Job]) -> dict[str, Job]:
    """Runs among these jobs, and children and their parents, as they are now."""
    ids = {job.id for job in jobs if job.task == TASK or job.parent is not None}
    ids |= {job.parent for job in jobs if job.task != TASK and job.parent is not None}
    return {job.id: job async for some in parts(engine, sorted(ids)) for job in some}


def _same(job: Job, now: Job) -> bool:
    """Whether a finished job has not been run since it was read."""
    return now.status.final and now.token == job.token


class Family(msgspec.Struct, frozen=True):
    """A run, and which jobs are those of its steps now. `unreadable` says why its workflow cannot
    be read here, if it cannot.
    """

    run: Job
    workflow: Workflow | None
    current: Mapping[str, frozenset[str]]
    unreadable: str | None = None

    @classmethod
    async def of(cls, engine: Engine, run: Job) -> Family:
        """Read what a run has begun."""
        begun = await engine.entries(run.id, CHILDREN)
        current = {entry.name: frozenset(child_ids(entry)) for entry in begun}
        try:
            return cls(run, parts_of(run)[0], current)
        except JobConflict as error:
            return cls(run, None, current, str(error))

    def refusal(self, job: Job, *, asked: bool) -> str | None:
        """Why a job of a step cannot be run again, if it cannot. `asked`: its run is run again."""
        run = self.run
        if self.unreadable is not None:
            return self.unreadable
        if not run.status.final:
            return (
                f'job {job.id} is the step "{job.group}" of run {run.id}, which is {run.status}; '
                "it can be retried when the run is over"
            )
        if job.id not in self.current.get(job.group or "", ()):
            return (
                f'job {job.id} was the step "{job.group}" of run {run.id}, and another has taken '
                f"its place; retry the run: headrace workflows retry {run.id}"
            )
        if run.status is Status.CANCELLED and not asked and self.needs(job):
            return (
                f'job {job.id} is the step "{job.group}" of run {run.id}, which was cancelled; '
                f"retry the run: headrace workflows retry {run.id}"
            )
        return None

    def needs(self, job: Job) -> bool:
        """Whether the run has to go on with this job: it is not complete because of it."""
        step = None if self.workflow is None else self.workflow.step(job.group or "")
        return (
            self.run.status is not Status.COMPLETED
            and job.status is not Status.COMPLETED
            and step is not None
            and step.on_failure == "fail"
        )
