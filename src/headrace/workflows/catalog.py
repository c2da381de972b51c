"""The workflows of an App: from files and from code, found by id, run as jobs."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import (
    InvalidArguments,
    InvalidInput,
    JobConflict,
    RecordConflict,
    UnknownWorkflow,
)
from headrace.model.job import Job, NewJob, Source
from headrace.model.limits.lane import Lane
from headrace.suggest import similar_or_first
from headrace.task import Task
from headrace.task.app_like import AppLike
from headrace.workflows.check import checked
from headrace.workflows.code import WorkflowBuilder, params_of
from headrace.workflows.model import Param, Workflow
from headrace.workflows.retry import OTHER_QUEUES, Retried, begin_again, rerun_from, retry_jobs
from headrace.workflows.run import RESULT_FILE, TASK, parts_of, workflow_task
from headrace.workflows.sealed import seal_run
from headrace.workflows.steps import RunView, look
from headrace.workflows.versions import version_order

RECORD = "workflow"

_KINDS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict[str, Any],
    "array": list[Any],
    "any": Any,
}


class Workflows:
    """Finds workflows and runs them.

    Those of the folder `workflows` are read when they are first asked for: by then all tasks are
    known, which the files are checked against.
    """

    def __init__(self, host: AppLike) -> None:
        self.host = host
        self._builders: list[WorkflowBuilder] = []
        self._known: dict[str, dict[int | str, Workflow]] = {}

    def define(
        self,
        workflow_id: str,
        *,
        version: int | str = 1,
        params: dict[str, Any] | None = None,
        **fields: Any,
    ) -> WorkflowBuilder:
        """Begin a workflow in code. It is checked when it is first asked for."""
        builder = WorkflowBuilder(
            id=workflow_id, version=version, params=params_of(params or {}), **fields
        )
        self._builders.append(builder)
        return builder

    def add(self, workflow: Workflow) -> Workflow:
        """Check a workflow and make it known. The one with the highest version is what runs, by the
        order of its numbers: 10 comes after 9, "1.10" after "1.9".
        """
        versions = self._known.setdefault(workflow.id, {})
        order = version_order(workflow.version)
        for version, other in versions.items():
            if version_order(version) == order and other != workflow:
                also = "" if version == workflow.version else f", also as {version},"
                raise InvalidInput(
                    f'workflow "{workflow.id}" version {workflow.version} is there twice{also} and '
                    "they differ; give the newer one a higher version"
                )
        versions[workflow.version] = checked(workflow, self.host.tasks)
        return workflow

    def load(self, folder: str | Path) -> list[Workflow]:
        """Read all workflow files of a folder."""
        from headrace.workflows.load import files, load_file  # noqa: PLC0415 - an extra

        return [self.add(load_file(path, self.host.tasks)) for path in files(Path(folder))]

    @functools.cached_property
    def _every(self) -> dict[str, dict[int | str, Workflow]]:
        folder = Path(self.host.settings.workflows)
        if folder.is_dir():
            self.load(folder)
        for builder in self._builders:
            self.add(builder.build())
        return self._known

    def all(self) -> list[Workflow]:
        """The newest version of each workflow, by id."""
        return [_newest(versions) for _, versions in sorted(self._every.items()) if versions]

    def find(self, workflow_id: str, version: int | str | None = None) -> Workflow:
        """A workflow, the newest unless a version is given."""
        versions = self._every.get(workflow_id)
        if not versions:
            known = similar_or_first(workflow_id, self._every)
            raise UnknownWorkflow(
                f'unknown workflow "{workflow_id}"; known: {known}; put its file into '
                f'"{self.host.settings.workflows}" (HEADRACE_WORKFLOWS)'
            )
        if version is None:
            return _newest(versions)
        for known_version, workflow in versions.items():
            if str(known_version) == str(version):
                return workflow
        raise UnknownWorkflow(
            f'workflow "{workflow_id}" has no version {version}; known: '
            f"{', '.join(str(each) for each in sorted(versions, key=version_order))}"
        )

    def queues(self, workflow: Workflow) -> set[str]:
        """The queues that a run of this workflow uses, as far as its tasks are known here."""
        tasks = self.host.tasks
        used = (
            step.queue or (tasks[step.task].policy.queue if step.task in tasks else None)
            for step in workflow.steps
        )
        return {workflow.queue, *filter(None, used)}

    async def run(
        self,
        workflow_id: str,
        params: dict[str, Any] | None = None,
        *,
        version: int | str | None = None,
        key: str | None = None,
        priority: int | None = None,
        source: Source = "workflow",
        meta: dict[str, Any] | None = None,
    ) -> Job:
        """Begin a run: one job, which keeps this version of the workflow until it is over."""
        workflow = self.find(workflow_id, version)
        given = complete_params(workflow, params or {})
        job = self._job(workflow, given, key=key, priority=priority, source=source, meta=meta)
        await self.host.open()
        await self._keep(workflow)
        return await self.host.enqueue_job(job)

    def job(
        self,
        workflow_id: str,
        params: dict[str, Any] | None = None,
        *,
        version: int | str | None = None,
        priority: int | None = None,
    ) -> NewJob:
        """Make a run without beginning it: a handler gives it to `ctx.spawn`, `ctx.gather` or
        `ctx.then`. Whether its version was run with other content is not checked.
        """
        workflow = self.find(workflow_id, version)
        given = complete_params(workflow, params or {})
        return self._job(workflow, given, key=None, priority=priority, source="workflow", meta=None)

    async def look(self, job: Job, *, exact: bool = True) -> RunView:
        """How far a run is, step by step. If it need not be `exact`, the work is bounded: of more
        than 10,000 jobs some may be taken for done.
        """
        await self.host.open()
        return await look(self.host.engine, job, exact=exact)

    async def output(self, job: Job) -> Any:
        """What a completed run resulted in, also if that is too large to be its job's result."""
        match job.result:
            case {"headrace.artifact": str(path), "bytes": int()} if job.task == TASK:
                content = await self.host.artifact_store.get(path)
                if self.host.sealing is not None:
                    content = self.host.sealing.open_file(job.id, RESULT_FILE, content)
                return msgspec.json.decode(content)
            case result:
                return result

    async def retry(self, job: Job, from_step: str | None = None) -> list[str]:
        """Run a finished run again: from a step, or what did not complete. Returns the steps."""
        await self.host.open()
        return (await begin_again(self.host.engine, job, from_step)).steps

    async def retry_jobs(self, jobs: Sequence[Job], queues: Collection[str] = ()) -> Retried:
        """Run jobs again; runs, and jobs that are steps of one, by their runs (`retry_jobs`). With
        `queues` only runs that use no others.
        """
        await self.host.open()
        allowed = functools.partial(self.within, queues=queues) if queues else None
        return await retry_jobs(self.host.engine, jobs, allowed)

    async def check_queues(self, job: Job, queues: Collection[str]) -> None:
        """Refuse to retry a step whose run uses other queues than these; empty means all."""
        if not queues or job.parent is None:
            return
        for run in await self.host.engine.get([job.parent]):
            if run.task == TASK and not self.within(run, queues):
                raise JobConflict(OTHER_QUEUES.format(job.id))

    def within(self, run: Job, queues: Collection[str]) -> bool:
        """Whether a run uses no other queues than these; empty means all."""
        try:
            workflow, _ = parts_of(run)
        except JobConflict:
            return not queues
        # Nobody knows the queue of a task that is not known here.
        known = self.host.tasks
        unknown = any(step.queue is None and step.task not in known for step in workflow.steps)
        return not queues or (not unknown and {run.queue, *self.queues(workflow)} <= set(queues))

    async def rerun_from(self, job: Job, stage: str) -> None:
        """Run a finished job again from a stage of its handler, and its run if it is a step."""
        await self.host.open()
        await rerun_from(self.host.engine, job, stage)

    def _job(
        self,
        workflow: Workflow,
        params: dict[str, Any],
        *,
        key: str | None,
        priority: int | None,
        source: Source,
        meta: dict[str, Any] | None,
    ) -> NewJob:
        about = {**(meta or {}), "workflow_id": workflow.id, "workflow_version": workflow.version}
        job = (
            self.task.options(
                queue=workflow.queue,
                priority=workflow.priority if priority is None else priority,
                key=key,
                source=source,
                meta=about,
            )
        ).job(workflow=msgspec.to_builtins(workflow), params=params)
        if workflow.lane is not None:
            lane = Lane(workflow.lane)
            job.lane, job.width, job.hold = lane.place(params), lane.width, lane.hold
        seal_run(job, workflow, self.host.tasks, self.host.sealing)
        return job

    @functools.cached_property
    def task(self) -> Task[..., Any]:
        """The task that runs workflows. Every worker has it."""
        return workflow_task(self.host)

    async def _keep(self, workflow: Workflow) -> None:
        """Remember what this version is, so that a run of today is the same as one of tomorrow."""
        body = msgspec.json.encode(workflow, order="deterministic")
        key = f"{workflow.id}@{workflow.version}"
        try:
            await self.host.engine.record_put(RECORD, key, body, version=0)
        except RecordConflict:
            kept = await self.host.engine.record_get(RECORD, key)
        else:
            kept = None
        if kept is not None and kept.body != body:
            raise InvalidInput(
                f'workflow "{workflow.id}" version {workflow.version} has been run with other '
                "content; give what you have changed another version"
            )


def _newest(versions: Mapping[int | str, Workflow]) -> Workflow:
    return versions[max(versions, key=version_order)]


def complete_params(workflow: Workflow, given: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters of a run against those declared, and add defaults."""
    declared = workflow.params
    if not declared:
        return given
    place = f'workflow "{workflow.id}"'
    for name in given:
        if name not in declared:
            known = ", ".join(declared)
            raise InvalidArguments(f"{place} has no parameter {name!r}; it takes: {known}")
    complete = {}
    for name, param in declared.items():
        if name in given:
            complete[name] = _fitting(place, name, param, given[name])
        elif param.default is not msgspec.UNSET:
            complete[name] = param.default
        else:
            raise InvalidArguments(f"{place} needs the parameter {name!r} ({param.type})")
    return complete


def _fitting(place: str, name: str, param: Param, value: Any) -> Any:
    if param.type == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # to JSON 5.0 is a whole number too
    try:
        return msgspec.convert(value, _KINDS[param.type])
    except msgspec.ValidationError:
        raise InvalidArguments(
            f"{place}: parameter {name!r} must be of type {param.type}, got {value!r}"
        ) from None
