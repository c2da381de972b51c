"""Run workflows; begin runs again, and stop them."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.actions.jobs import REASON
from headrace.server.dashboard.pages.workflows.run import seen_run
from headrace.server.http.problems import invalid
from headrace.server.routes.workflows import begin_run, usable_workflow
from headrace.workflows.model import Param, Workflow

FIELD = "param."
_NOT_GIVEN = object()


@action("/workflows/{workflow_id:path}/run", scope="write")
async def start(act: Act) -> Done:
    """Begin a run with the parameters of the form."""
    workflow = usable_workflow(
        act.service, act.caller, act.params["workflow_id"], act.form.get("version") or None
    )
    job = await begin_run(act.service, act.caller, workflow, _params(act, workflow))
    await act.changed("workflow.execute", workflow.id, job_id=job.id)
    return Done(f"A run of {workflow.id} has begun.", to=act.url("/runs", job.id))


@action("/runs/{run_id}/retry", scope="write")
async def retry(act: Act) -> Done:
    """Do again what did not complete, or a step and all that follow from it."""
    job = act.reach.check_own(await seen_run(act, act.params["run_id"]))
    steps = await act.app.workflows.retry(job, act.form.get("step") or None)
    await act.changed("workflow.retry", job.id, steps=steps)
    more = f" and {len(steps) - 10:,} more" if len(steps) > 10 else ""
    return Done(f"It goes on with: {', '.join(steps[:10])}{more}.")


@action("/runs/{run_id}/cancel", scope="write")
async def cancel(act: Act) -> Done:
    """Stop a run and the jobs of its steps."""
    job = act.reach.check_own(await seen_run(act, act.params["run_id"]))
    await act.app.cancel(job.id, REASON)
    await act.changed("job.cancel", job.id, reason=REASON)
    return Done("The run is cancelled. Running jobs of its steps are asked to stop.")


def _params(act: Act, workflow: Workflow) -> dict[str, Any]:
    """Return what was filled in. An empty field is not given: its default counts."""
    if not workflow.params:
        text = act.form.get("params", "").strip()
        given = _json("params", text) if text else {}
        if not isinstance(given, dict):
            raise invalid('give an object of names and values, such as {"a": 1}', field="params")
        return given
    found = {
        name: _value(name, param, act.form.get(FIELD + name, ""))
        for name, param in workflow.params.items()
    }
    return {name: value for name, value in found.items() if value is not _NOT_GIVEN}


def _value(name: str, param: Param, text: str) -> Any:
    if not text:
        return _NOT_GIVEN
    if param.type == "string":
        return text
    if param.type == "any":
        # As on the command line: JSON if it is, else text.
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return _json(name, text)


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise invalid(f"{name} is not JSON: {error}; correct it", field=name) from None
