"""A run: one job that begins steps as children, waits for them without a slot, and goes on.

What has ended is kept as a stage of the job under the step's id, what has begun as its children of
that name. So a run that is taken up again, by whomever, knows both, and no step is done twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.engine.base import Engine
from headrace.engine.bounded_reads import parts
from headrace.errors import InvalidInput, JobConflict, NotRetryable, UnknownWorkflow
from headrace.job_tree import child_ids, complete_rerun, record_of
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.durable.context import Context
from headrace.model.durable.entries import CHILDREN, STAGE
from headrace.model.job import Job, NewJob
from headrace.model.policy import TaskPolicy
from headrace.model.retry import LONGEST_DELAY, RetryPolicy
from headrace.model.status import Status
from headrace.task import Task
from headrace.task.app_like import AppLike
from headrace.task.codec import encode
from headrace.workflows.conditions import Condition
from headrace.workflows.model import Step, Workflow
from headrace.workflows.references import resolve
from headrace.workflows.sealed import arguments_of, openable, seal_if_needed, sealed_file
from headrace.workflows.step_ends import OUTPUT, StepEnd

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext

TASK = "headrace.workflow"
# A run only begins and collects. Workers that die under it are not its fault.
RETRIES = 1_000
# In the `meta` of a run that acts for a user: the argument of tasks that names whom they are for.
USER_ARGUMENT = "user_argument"
# How many failures of one step are named in the error.
SHOWN = 3

# The result of a run whose output is larger than `payload_limit`: the path of an artifact.
LARGE_RESULT = "headrace.artifact"
RESULT_FILE = "output.json"

# Stands for an end that has been kept, and is read instead.
KEPT = StepEnd("failed")


def workflow_task(host: AppLike) -> Task[..., Any]:
    """The task that runs workflows for this App."""

    async def run_workflow(ctx: Context, workflow: Workflow, params: dict[str, Any]) -> Any:
        return await Run(ctx, host, workflow, params).go()  # type: ignore[arg-type]

    policy = TaskPolicy(retry=RetryPolicy(retries=RETRIES), timeout=None, encrypt=False)
    return Task(run_workflow, name=TASK, policy=policy, sink=host)


class Run:
    """One activation of a run: from where it stands as far as it goes."""

    def __init__(
        self, ctx: JobContext, host: AppLike, workflow: Workflow, params: dict[str, Any]
    ) -> None:
        self.ctx = ctx
        self.host = host
        self.workflow = workflow
        self.params = params
        self.ends: dict[str, StepEnd] = {}
        self.begun: dict[str, list[str]] = {}
        self._looked = False

    async def go(self) -> Any:
        """Work until the run is over, or until only children have something to do."""
        seal_if_needed(self.ctx, self.workflow, self.host.tasks)
        await self._remember()
        while True:
            await self._collect()
            ready = next_steps(self.workflow, self.ends, set(self.begun))
            for step in ready:
                await self._begin(step)
            if ready:
                continue
            open_steps = [name for name in self.begun if name not in self.ends]
            if not open_steps:
                return await self._result()
            awaits = tuple(AwaitedChildren(group=name) for name in open_steps)
            self.ctx.suspend(LONGEST_DELAY, awaits)

    async def _remember(self) -> None:
        steps = {step.id for step in self.workflow.steps}
        for entry in await self.ctx.entries(CHILDREN):
            # Of one that was broken off half-way, the rest is stored when it is begun again.
            if entry.name in steps and record_of(entry).stored:
                self.begun[entry.name] = child_ids(entry)
        for entry in await self.ctx.entries(STAGE):
            if entry.name in steps:
                await self._end(entry.name, KEPT)

    async def _collect(self) -> None:
        """Take note of the steps whose children are all over."""
        for step in self.workflow.steps:
            if step.id in self.ends or step.id not in self.begun:
                continue
            end = await self._outcome(step)
            if end is not None and end.status == "failed" and await self._begun_again():
                end = await self._outcome(step)
            if end is not None:
                await self._end(step.id, end)

    async def _outcome(self, step: Step) -> StepEnd | None:
        ids = self.begun[step.id]
        jobs = await get_all(self.host.engine, ids)
        return outcome_of(step, ids, openable(self.ctx, jobs, self.host.sealing))

    async def _begun_again(self) -> bool:
        """Whether jobs of failed steps may have been run again at this moment: whoever has begun
        the run again may not have come to it yet, or may have done it just now.
        """
        if self._looked:
            return False
        self._looked = True
        await complete_rerun(self.host.engine, self.ctx.job_id)
        return True

    async def _begin(self, step: Step) -> None:
        scope = scope_of(self.ctx.job_id, self.params, self.ends)
        try:
            if skipped(step, self.ends, scope):
                await self._end(step.id, StepEnd("skipped"))
                return
            jobs = self._jobs(step, scope)
        except InvalidInput as error:
            await self._end(step.id, StepEnd("failed", error=str(error)))
            return
        if not jobs:
            await self._end(step.id, StepEnd("completed", output=[]))
            return
        self.begun[step.id] = await self.ctx.spawn(jobs, group=step.id)

    def _jobs(self, step: Step, scope: dict[str, Any]) -> list[NewJob]:
        """The jobs of a step: one, or one for each item."""
        if step.each is None:
            return [self._job(step, scope)]
        items = resolve(step.each, scope)
        if items is None:
            return []  # of a step that was passed over
        if not isinstance(items, list):
            raise InvalidInput(
                f'step "{step.id}": each must be a list, got {type(items).__name__}: '
                f"{str(items)[:100]}"
            )
        return [
            self._job(step, {**scope, "item": item, "index": index})
            for index, item in enumerate(items)
        ]

    def _job(self, step: Step, scope: dict[str, Any]) -> NewJob:
        task = self.host.tasks.get(step.task)
        if task is None:
            raise InvalidInput(f'step "{step.id}": this worker has no task "{step.task}"')
        options: dict[str, Any] = {
            name: value
            for name in ("queue", "lane", "priority", "retries", "timeout")
            if (value := getattr(step, name)) is not None
        }
        meta = {"workflow_id": self.workflow.id, "step": step.id}
        bound = task.options(source="workflow", meta=meta, **options)
        job = bound.job(**self._for_user(step, task, resolve(step.params, scope)))
        if job.lane is not None and (job.queue, job.lane) == (self.ctx.queue, self.ctx.lane):
            raise InvalidInput(
                f'step "{step.id}" would wait for its own workflow: both are in lane {job.lane!r} '
                f"of queue {job.queue!r}; give one of them another lane or queue"
            )
        return job

    def _for_user(
        self, step: Step, task: Task[..., Any], arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Hold a step to the user that the run acts for, if it was begun by a key of a user."""
        user, name = self.ctx.meta.get("user"), self.ctx.meta.get(USER_ARGUMENT)
        if user is None or name not in task.signature.names:
            return arguments
        if str(arguments.setdefault(name, task.signature.of_text(name, user))) != user:
            raise InvalidInput(
                f'step "{step.id}": this run acts for user {user!r} only, but {name} is '
                f"{arguments[name]!r}"
            )
        return arguments

    async def _end(self, name: str, end: StepEnd) -> None:
        """Keep how a step ended; of one that was kept before, that counts."""

        output = end.output
        # What completed is kept as one, which programs before this one can read as well.
        if end.status == "failed" and end.output and len(encode(end)) > self.ctx.payload_limit:
            output = await self._large_output(name, output)
            end = msgspec.structs.replace(end, output=None, large=True)

        async def ended() -> StepEnd:
            return end

        kept = await self.ctx.stage(name, ended)
        if kept.large:
            if end is KEPT:
                output = await self._large_output(name, None)
            kept = msgspec.structs.replace(kept, output=output)
        self.ends[name] = kept
        self.ctx.progress(100 * len(self.ends) / len(self.workflow.steps))

    async def _large_output(self, name: str, output: Any) -> Any:
        """Keep an output by itself, which puts it into an artifact, or return what was kept."""

        async def outputs() -> Any:
            return output

        return await self.ctx.stage(name, outputs, key=OUTPUT)

    async def _result(self) -> Any:
        failed = fatal(self.workflow, self.ends)
        if failed:
            raise NotRetryable(
                "; ".join(f'step "{name}" failed: {self.ends[name].error}' for name in failed)
            )
        scope = scope_of(self.ctx.job_id, self.params, self.ends)
        try:
            result = result_of(self.workflow, self.ends, scope)
        except InvalidInput as error:
            # Every step is over, so it would be the same at each attempt.
            raise NotRetryable(f"output of the workflow: {error}") from None
        encoded = encode(result)
        if len(encoded) <= self.ctx.payload_limit:
            return result
        content = sealed_file(self.ctx, RESULT_FILE, encoded)
        path = await self.ctx.artifacts.put(RESULT_FILE, content, media_type="application/json")
        return {LARGE_RESULT: path, "bytes": len(encoded)}


# -- what comes next, decided from what is known of the steps, without any I/O --------------------


def fatal(workflow: Workflow, ends: Mapping[str, StepEnd]) -> list[str]:
    """The steps that failed and whose failure is the workflow's."""
    return [
        step.id
        for step in workflow.steps
        if step.on_failure == "fail" and step.id in ends and ends[step.id].status == "failed"
    ]


def next_steps(workflow: Workflow, ends: Mapping[str, StepEnd], started: set[str]) -> list[Step]:
    """The steps that can be begun now: neither begun nor over, and all before them are over.

    Once a step has failed that must not, nothing more is begun.
    """
    if fatal(workflow, ends):
        return []
    return [
        step
        for step in workflow.steps
        if step.id not in ends
        and step.id not in started
        and all(needed in ends for needed in step.depends_on)
    ]


def skipped(step: Step, ends: Mapping[str, StepEnd], scope: Mapping[str, Any]) -> bool:
    """Whether a step that could be begun is passed over: its condition is false, or there is no
    way to it because all that it depends on was passed over.
    """
    before = step.depends_on
    if before and all(ends[needed].status == "skipped" for needed in before):
        return True
    if isinstance(step.when, str):
        return not Condition(step.when).holds(scope)
    return step.when is False


def scope_of(run_id: str, params: Mapping[str, Any], ends: Mapping[str, StepEnd]) -> dict[str, Any]:
    """What references stand for at this point of a run."""
    steps = {name: {"output": end.output, "status": end.status} for name, end in ends.items()}
    return {"params": params, "run": {"id": run_id}, "steps": steps}


def result_of(workflow: Workflow, ends: Mapping[str, StepEnd], scope: Mapping[str, Any]) -> Any:
    """What a run that is over results in."""
    if workflow.output is not None:
        return resolve(workflow.output, scope)
    return {step.id: ends[step.id].output for step in workflow.last()}


def outcome_of(step: Step, ids: Sequence[str], jobs: Sequence[Job]) -> StepEnd | None:
    """How a step ended, from how its jobs did; None while some of them have not."""
    if not all(job.status.final for job in jobs):
        return None
    by_id = {job.id: job for job in jobs}
    outputs: list[Any] = []
    faults: list[str] = []
    for job_id in ids:
        job = by_id.get(job_id)
        completed = job is not None and job.status is Status.COMPLETED
        outputs.append(job.result if job is not None and completed else None)
        if not completed:
            status = "gone" if job is None else job.status.value
            reason = None if job is None else job.error
            faults.append(f"job {job_id} {status}: {reason or 'no reason kept'}")
    output = outputs if step.each is not None else outputs[0]
    if not faults:
        return StepEnd("completed", output=output, jobs=len(ids))
    problem = "; ".join(faults[:SHOWN])
    error = problem if len(ids) == 1 else f"{len(faults)} of {len(ids)}: {problem}"
    # What did work may still be of use to a step that goes on without the rest.
    return StepEnd("failed", output=output, error=error, jobs=len(ids))


async def get_all(engine: Engine, ids: Sequence[str]) -> list[Job]:
    """All of these jobs that exist, however many."""
    return [job async for part in parts(engine, ids) for job in part]


def parts_of(job: Job) -> tuple[Workflow, dict[str, Any]]:
    """The workflow that a run began with, and its parameters. Raises `JobConflict` for a run whose
    workflow says what only a later program knows.
    """
    if job.task != TASK:
        raise UnknownWorkflow(f"job {job.id} runs {job.task!r}, not a workflow")
    try:
        args = arguments_of(job)
        return msgspec.convert(args["workflow"], Workflow), args["params"]
    except (msgspec.ValidationError, KeyError) as error:
        raise JobConflict(
            f"the workflow of run {job.id} cannot be read by this version of headrace ({error}); "
            "use the one that began it, or a later one"
        ) from None
