"""Workflows: what there is to run, and how the last runs went."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.server.dashboard.charts import dots
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.pages.workflows.pictures import GraphStep, step_graph
from headrace.server.dashboard.pages.workflows.recent import FoundRun, RecentRuns
from headrace.server.dashboard.visit import Visit
from headrace.server.filters import job_cursor
from headrace.server.routes.workflows import usable_workflow, usable_workflows
from headrace.workflows.model import Param, Workflow

MOST_WORKFLOWS = 200
# The runs that the list looks at, and how many of them each workflow shows.
RUNS = 200
DOTS = 10
RUN_ROWS = 20
MOST_STEPS = 200


@page("/workflows", title="Workflows", key="f")
async def workflows(visit: Visit) -> Shown:
    """Show each with its steps and its last runs."""
    known = usable_workflows(visit.service, visit.caller)
    recent = await visit.service.part(RecentRuns).page(visit.caller, cursor=None, limit=RUNS)
    last: dict[str, list[FoundRun]] = {each.id: [] for each in known}
    for run in recent.runs:
        if run.workflow_id in last:
            last[run.workflow_id].append(run)
    return Shown(
        "workflows/workflows.html",
        workflows=known[:MOST_WORKFLOWS],
        left_out=len(known) - MOST_WORKFLOWS,
        last=last,
        dots={name: _dots(name, runs[:DOTS]) for name, runs in last.items() if runs},
        folder=visit.app.settings.workflows,
    )


@page("/workflows/{workflow_id:path}", title="Workflow", query=("version", "cursor"))
async def workflow(visit: Visit) -> Shown:
    """Show its graph, its steps, its runs, and the form that runs it."""
    found = usable_workflow(
        visit.service, visit.caller, visit.params["workflow_id"], visit.query.get("version") or None
    )
    runs = await visit.service.part(RecentRuns).page(
        visit.caller, found.id, cursor=job_cursor(visit.query.get("cursor")), limit=RUN_ROWS
    )
    steps = [GraphStep(id=each.id, task=each.task, needs=each.depends_on) for each in found.steps]
    return Shown(
        "workflows/workflow.html",
        title=f"Workflow {found.id}",
        workflow=found,
        graph=step_graph(f"Steps of {found.id}", steps),
        steps=found.steps[:MOST_STEPS],
        params=[_field(visit, name, param) for name, param in found.params.items()],
        runs=runs.runs,
        next=None if runs.cursor is None else visit.again(cursor=runs.cursor),
        first=visit.query.get("cursor") is None,
        line=_line(found),
        used=sorted(visit.app.workflows.queues(found)),
    )


def _dots(name: str, runs: list[FoundRun]) -> Any:
    outcomes = [(run.status, f"{run.status}, {run.job.id[-6:]}") for run in reversed(runs)]
    said = ", ".join(status for status, _ in outcomes)
    return dots(f"Last runs of {name}, the oldest first: {said}", outcomes)


def _field(visit: Visit, name: str, param: Param) -> dict[str, Any]:
    """Return what the form needs for a parameter. The default of a hidden one is not shown."""
    hidden = bool(visit.redactor.hidden_in({name: ""}))
    default = None if param.default is msgspec.UNSET else visit.redactor.value(param.default)
    return {
        "name": name,
        "param": param,
        "hidden": hidden,
        "required": param.default is msgspec.UNSET,
        "default": "" if default is None or hidden else _json(default)[:200],
    }


def _json(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _line(found: Workflow) -> str:
    given = [f"{name}=…" for name, param in found.params.items() if param.default is msgspec.UNSET]
    return " ".join(["headrace workflows run", found.id, *given])
