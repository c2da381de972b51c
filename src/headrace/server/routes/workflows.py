"""Workflows: list, run, follow a run step by step, retry a run."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import NAME, ExecuteRequest, RunRetryRequest
from headrace.api_types.responses import BegunAgain, ExecuteAnswer, RunBegun
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routes.job import JobId
from headrace.server.routing import Call, Router
from headrace.workflows.model import Workflow
from headrace.workflows.steps import RunView

routes: list[BaseRoute] = []
reading, writing = Router("read", routes), Router("write", routes)

WorkflowId = Annotated[str, Path(pattern=NAME)]
Version = Annotated[str | None, Query(max_length=100)]


@reading("GET /workflows", "List workflows", page("workflows", Workflow))
async def find(call: Call) -> Response:
    """The newest version of each workflow that this server knows."""
    known = call.service.app.workflows.all()
    touch = call.caller.may_touch
    return listed("workflows", [each for each in known if all(map(touch, _queues(call, each)))])


@reading("GET /workflows/{workflow_id}", "Show a workflow", Workflow)
async def show(call: Call, workflow_id: WorkflowId, version: Version = None) -> Response:
    """A workflow with its steps; the newest version unless another is asked for."""
    return answer(_workflow(call, workflow_id, version))


@writing(
    "POST /api/v2/workflows/execute", "Run a workflow", ExecuteAnswer, ExecuteRequest, status=202
)
async def execute(call: Call) -> Response:
    """Begins a run, which keeps this version of the workflow until it is over."""
    asked, caller = await read_json(call, ExecuteRequest), call.caller
    workflow = _workflow(call, asked.workflow_id, asked.version)
    # Whose key it was travels with the run.
    about = {"key_id": caller.key_id, "user": caller.user}
    job = await call.service.app.workflows.run(
        workflow.id,
        _params(call, workflow, asked.params),
        version=workflow.version,
        key=asked.key,
        meta={name: value for name, value in about.items() if value is not None},
    )
    await call.changed("workflow.execute", workflow.id, job_id=job.id)
    begun = RunBegun(job.id, workflow.id, workflow.version, job.status.value)
    return answer(ExecuteAnswer(data=begun), 202)


@reading("GET /workflows/runs/{job_id}", "Follow a run", RunView)
async def follow(call: Call, job_id: JobId) -> Response:
    """A run with the state of each of its steps."""
    view = await call.service.app.workflows.look(await call.job(job_id))
    return answer(call.service.answers.redactor.value(msgspec.to_builtins(view)))


@writing("POST /workflows/runs/{job_id}/retry", "Begin a run again", BegunAgain, RunRetryRequest)
async def retry(call: Call, job_id: JobId) -> Response:
    """From a step and all that follow from it, or what did not complete."""
    asked = await read_optional_json(call, RunRetryRequest)
    job = await call.job(job_id)
    steps = await call.service.app.workflows.retry(job, asked.step)
    await call.changed("workflow.retry", job.id, steps=steps)
    return answer(BegunAgain(job.id, steps))


def _queues(call: Call, workflow: Workflow) -> set[str]:
    """The queues that a run of this workflow uses."""
    tasks = call.service.app.tasks
    used = {step.queue or tasks[step.task].policy.queue for step in workflow.steps}
    return {workflow.queue, *used}


def _workflow(call: Call, workflow_id: str, version: int | str | None) -> Workflow:
    """A workflow, if this caller may use its queues."""
    workflow = call.service.app.workflows.find(workflow_id, version)
    for queue in sorted(_queues(call, workflow)):
        call.caller.check_queue(queue)
    return workflow


def _params(call: Call, workflow: Workflow, given: dict[str, Any]) -> dict[str, Any]:
    """A key with a user acts for that user alone."""
    name, user = call.service.user_argument, call.caller.user
    if user is None or name is None or name not in workflow.params:
        return given
    call.caller.check_user(f"params.{name}", given.get(name, user))
    return {name: user, **given}
