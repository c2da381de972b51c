"""Workflows: list, run, follow a run step by step, retry a run."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import NAME, ExecuteRequest, RunRetryRequest
from headrace.api_types.responses import BegunAgain, ExecuteAnswer, RunBegun
from headrace.server.auth.guard import Caller, caller_of, router
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.routes.job import JobId, the_job
from headrace.server.service import Service, service_of
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView

reading, writing = router("read"), router("write")

WorkflowId = Annotated[str, Path(pattern=NAME)]
Version = Annotated[str | None, Query(max_length=100)]


@reading.get("/workflows", summary="List workflows", **answers(page("workflows", Workflow)))
async def find(request: Request) -> Response:
    """The newest version of each workflow that this server knows."""
    service, caller = service_of(request), caller_of(request)
    known = service.app.workflows.all()
    return listed("workflows", [each for each in known if _may_run(service, caller, each)])


@reading.get("/workflows/{workflow_id}", summary="Show a workflow", **answers(Workflow))
async def show(request: Request, workflow_id: WorkflowId, version: Version = None) -> Response:
    """A workflow with its steps; the newest version unless another is asked for."""
    service = service_of(request)
    workflow = service.app.workflows.find(workflow_id, version)
    _check_queues(service, caller_of(request), workflow)
    return answer(workflow)


@writing.post(
    "/api/v2/workflows/execute",
    summary="Run a workflow",
    **answers(ExecuteAnswer, 202),
    **accepts(ExecuteRequest),
)
async def execute(request: Request) -> Response:
    """Begins a run, which keeps this version of the workflow until it is over."""
    service, caller = service_of(request), caller_of(request)
    asked = await read_json(request, ExecuteRequest)
    workflows = service.app.workflows
    workflow = workflows.find(asked.workflow_id, asked.version)
    _check_queues(service, caller, workflow)
    job = await workflows.run(
        workflow.id,
        _params(service, caller, workflow, asked.params),
        version=workflow.version,
        key=asked.key,
        meta=_about(caller),
    )
    await service.audit.changed(caller, "workflow.execute", workflow.id, job_id=job.id)
    begun = RunBegun(job.id, workflow.id, workflow.version, job.status.value)
    return answer(ExecuteAnswer(data=begun), 202)


@reading.get("/workflows/runs/{job_id}", summary="Follow a run", **answers(RunView))
async def follow(request: Request, job_id: JobId) -> Response:
    """A run with the state of each of its steps."""
    service = service_of(request)
    view = await service.app.workflows.look(await the_job(request, job_id))
    return answer(service.answers.redactor.value(msgspec.to_builtins(view)))


@writing.post(
    "/workflows/runs/{job_id}/retry",
    summary="Begin a run again",
    **answers(BegunAgain),
    **accepts(RunRetryRequest, optional=True),
)
async def retry(request: Request, job_id: JobId) -> Response:
    """From a step and all that follow from it, or what did not complete."""
    service, caller = service_of(request), caller_of(request)
    asked = await read_optional_json(request, RunRetryRequest)
    job = await the_job(request, job_id)
    steps = await service.app.workflows.retry(job, asked.step)
    await service.audit.changed(caller, "workflow.retry", job.id, steps=steps)
    return answer(BegunAgain(job.id, steps))


def _queues(service: Service, workflow: Workflow) -> set[str]:
    """The queues that a run of this workflow uses."""
    tasks = service.app.tasks
    used = {step.queue or tasks[step.task].policy.queue for step in workflow.steps}
    return {workflow.queue, *used}


def _may_run(service: Service, caller: Caller, workflow: Workflow) -> bool:
    return all(caller.may_touch(queue) for queue in _queues(service, workflow))


def _check_queues(service: Service, caller: Caller, workflow: Workflow) -> None:
    for queue in sorted(_queues(service, workflow)):
        caller.check_queue(queue)


def _about(caller: Caller) -> dict[str, Any]:
    """Whose key it was travels with the run."""
    about = {"key_id": caller.key_id, "user": caller.user}
    return {name: value for name, value in about.items() if value is not None}


def _params(
    service: Service, caller: Caller, workflow: Workflow, given: dict[str, Any]
) -> dict[str, Any]:
    """A key with a user acts for that user alone."""
    name = service.user_argument
    if caller.user is None or name is None or name not in workflow.params:
        return given
    if str(given.get(name, caller.user)) != caller.user:
        raise Refused(
            403,
            "forbidden",
            f"this key acts for user {caller.user!r} only",
            field=f"params.{name}",
            value=given[name],
            remedy=f"leave {name} out, or use a key of that user",
        )
    return {name: caller.user, **given}
