"""Workflows: list, run, follow a run step by step, retry a run."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import NAME, ExecuteRequest, RunRetryRequest
from headrace.api_types.responses import BegunAgain, ExecuteAnswer, RunBegun
from headrace.errors import InvalidInput, UnknownWorkflow
from headrace.model.job import Job, NewJob
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import Reach
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routes.job import JobId
from headrace.server.routing import Call, Router
from headrace.server.service import Service
from headrace.suggest import unknown
from headrace.workflows.model import Workflow
from headrace.workflows.run import TASK, USER_ARGUMENT, parts_of
from headrace.workflows.steps import RunView

routes: list[BaseRoute] = []
reading, writing = Router("read", routes), Router("write", routes)

WorkflowId = Annotated[str, Path(pattern=NAME)]
Version = Annotated[str | None, Query(max_length=100)]


@reading("GET /workflows", "List workflows", page("workflows", Workflow))
async def find(call: Call) -> Response:
    """The newest version of each workflow that this server knows."""
    return listed("workflows", usable_workflows(call.service, call.caller))


@reading("GET /workflows/{workflow_id}", "Show a workflow", Workflow)
async def show(call: Call, workflow_id: WorkflowId, version: Version = None) -> Response:
    """A workflow with its steps; the newest version unless another is asked for."""
    return answer(usable_workflow(call.service, call.caller, workflow_id, version))


@writing(
    "POST /api/v2/workflows/execute", "Run a workflow", ExecuteAnswer, ExecuteRequest, status=202
)
async def execute(call: Call) -> Response:
    """Begins a run, which keeps this version of the workflow until it is over."""
    asked = await read_json(call, ExecuteRequest)
    workflow = usable_workflow(call.service, call.caller, asked.workflow_id, asked.version)
    priority = None if asked.priority is msgspec.UNSET else asked.priority
    job = await begin_run(
        call.service, call.caller, workflow, asked.params, key=asked.key, priority=priority
    )
    await call.changed("workflow.execute", workflow.id, job_id=job.id)
    begun = RunBegun(job.id, workflow.id, workflow.version, job.status.value)
    return answer(ExecuteAnswer(data=begun), 202)


@reading("GET /workflows/runs/{job_id}", "Follow a run", RunView)
async def follow(call: Call, job_id: JobId) -> Response:
    """A run with the state of each of its steps."""
    job = check_run(await call.job(job_id))
    job.opener = call.service.answers.sealing
    return answer(call.service.answers.run(job, await call.service.app.workflows.look(job)))


@writing("POST /workflows/runs/{job_id}/retry", "Begin a run again", BegunAgain, RunRetryRequest)
async def retry(call: Call, job_id: JobId) -> Response:
    """From a step and all that follow from it, or what did not complete."""
    asked = await read_optional_json(call, RunRetryRequest)
    job = check_run(await call.own_job(job_id))
    steps = await call.service.app.workflows.retry(job, asked.step)
    await call.changed("workflow.retry", job.id, steps=steps)
    return answer(BegunAgain(job.id, steps))


def check_run(job: Job) -> Job:
    """Return a run; refuse other jobs. It has to be one that this caller may see."""
    parts_of(job)
    return job


def usable_workflows(service: Service, caller: Caller) -> list[Workflow]:
    """Return the newest version of each workflow all of whose queues this caller may use."""
    reach = Reach(service, caller)
    return [each for each in service.app.workflows.all() if reach.uses(each)]


def usable_workflow(
    service: Service, caller: Caller, workflow_id: str, version: int | str | None = None
) -> Workflow:
    """Return a workflow, if this caller may use its queues."""
    workflows = service.app.workflows
    try:
        workflow = workflows.find(workflow_id, version)
    except UnknownWorkflow:
        if not caller.queues:
            raise
        raise _not_there(service, caller, workflow_id) from None
    if not Reach(service, caller).uses(workflow):
        raise _not_there(service, caller, workflow_id)
    return workflow


def _not_there(service: Service, caller: Caller, workflow_id: str) -> UnknownWorkflow:
    # The words of the catalog name others, which may be of other queues.
    known = [each.id for each in usable_workflows(service, caller)]
    return UnknownWorkflow(unknown("workflow", workflow_id, known))


async def begin_run(
    service: Service,
    caller: Caller,
    workflow: Workflow,
    params: dict[str, Any],
    *,
    key: str | None = None,
    priority: int | None = None,
) -> Job:
    """Begin a run of a workflow that this caller may use."""
    name, user = service.user_argument, caller.user
    # A key with a user acts for that user alone.
    if user is not None and name is not None and name in workflow.params:
        caller.check_user(f"params.{name}", params.get(name, user))
        params = {name: user, **params}
    reach = Reach(service, caller)
    await reach.check_named("params", msgspec.json.encode(params))
    # Whose key it was travels with the run; its steps are held to that user.
    about = {"key_id": caller.key_id, "user": user, USER_ARGUMENT: name if user else None}
    if key is not None:
        key = caller.stored_key(key, workflow.queue)
        asked = NewJob(id="", task=TASK, queue=workflow.queue, key=key)
        if (before := await reach.made_before(asked)) is not None:
            return before
    try:
        return await service.app.workflows.run(
            workflow.id,
            params,
            version=workflow.version,
            key=key,
            priority=priority,
            meta={name: value for name, value in about.items() if value is not None},
        )
    except InvalidInput as error:
        # It quotes what is wrong with a parameter.
        hide = service.answers.redactor.text
        error.args = (hide(str(error), msgspec.json.encode(params)),)
        raise
