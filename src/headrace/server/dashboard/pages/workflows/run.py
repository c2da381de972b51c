"""One run of a workflow: how far each step is, what ran when, what went wrong."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.model.job import Job, JobFilter
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.pages.workflows.pictures import (
    MOST_BOXES,
    GraphStep,
    run_gantt,
    step_graph,
)
from headrace.server.dashboard.visit import Visit
from headrace.server.dashboard.words import duration
from headrace.server.http.problems import invalid
from headrace.server.routes.workflows import check_run
from headrace.workflows.steps import RunView, StepView

ROWS = 100
MOST_CHILDREN = 500
# Of an output, an error or the parameters, so many characters are shown.
LONGEST = 2_000


async def seen_run(visit: Visit, run_id: str) -> Job:
    """Return a run that this caller may see."""
    return check_run(await visit.job(run_id))


@page("/runs/{run_id}", title="Run", query=("cursor",))
async def run(visit: Visit) -> Shown:
    """Show a run with its steps."""
    job = await seen_run(visit, visit.params["run_id"])
    job.opener = visit.service.answers.sealing
    found = await visit.app.workflows.look(job, exact=False)
    view = visit.service.answers.run(job, found)
    children = await visit.app.engine.list_jobs(
        JobFilter(parent=job.id), limit=MOST_CHILDREN, brief=True, look=MOST_CHILDREN
    )

    def link(step: StepView) -> str | None:
        if step.job_id is not None:
            return visit.url("/jobs", step.job_id)
        return visit.url("/jobs", parent=job.id, group=step.id) if step.jobs else None

    # Those of a large graph are drawn together, without links.
    few = len(view.steps) <= MOST_BOXES
    steps = [_graph_step(step, link(step) if few else None) for step in view.steps]
    bars, left_out = run_gantt(view, job, children.jobs, visit.now, link)
    start = _start(visit.query.get("cursor"))
    rest = len(view.steps) > start + ROWS
    return Shown(
        "workflows/run.html",
        title=f"Run of {view.workflow_id}",
        run=view,
        job=job,
        run_status=_status(job, view),
        steps=[(step, link(step)) for step in view.steps[start : start + ROWS]],
        next=visit.again(cursor=str(start + ROWS)) if rest else None,
        counts=_counts(view),
        graph=step_graph(f"Steps of run {job.id[-6:]}", steps),
        gantt=bars,
        left_out=left_out,
        began=any(step.started_at for step in view.steps),
        cut=cut,
    )


def cut(value: Any) -> str:
    """Return a value as JSON of bounded length."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def _status(job: Job, view: RunView) -> str:
    """Return its status; while it waits for its steps, it runs."""
    begun = any(step.status == "running" for step in view.steps)
    return "running" if begun and not job.status.final else job.status.value


def _counts(view: RunView) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in view.steps:
        found[step.status] = found.get(step.status, 0) + 1
    return found


def _graph_step(step: StepView, link: str | None) -> GraphStep:
    note = f"{step.done:,}/{step.jobs:,}" if step.jobs > 1 else ""
    if step.started_at is not None and step.ended_at is not None:
        note = f"{note} {duration(step.ended_at - step.started_at)}".strip()
    return GraphStep(
        id=step.id, task=step.task, needs=step.needs, status=step.status, note=note, link=link
    )


def _start(cursor: str | None) -> int:
    try:
        return max(0, int(cursor or "0"))
    except ValueError:
        raise invalid("cursor is the number of a step", field="cursor") from None
