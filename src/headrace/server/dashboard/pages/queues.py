"""Queues: how deep they are, how fast they empty, who paused them; and one queue."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, cast

from markupsafe import Markup

from headrace.api_types.series import SeriesView, StepName
from headrace.model.job import JobFilter
from headrace.model.names import check_name
from headrace.model.status import ACTIVE
from headrace.model.views import QueueView
from headrace.monitor.series.flow import QueueFlow
from headrace.monitor.why import knows, serves
from headrace.server.auth.bound_key_counts import own_rates
from headrace.server.dashboard.charts import Line, chart, sparkline
from headrace.server.dashboard.findings import links as finding_links
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.pages.lanes import MOST_RATES, rate_key
from headrace.server.dashboard.visit import Visit
from headrace.server.dashboard.words import moment_before
from headrace.server.http.problems import invalid

MOST = 200
MOST_LANES = 10
MOST_TASKS = 20
# Depth by task is that of the newest so many unfinished jobs.
LOOK = 500
STEPS = {"minute": "Last hour", "hour": "Last day", "day": "Last 30 days"}
OUTCOMES = {
    "completed": ("completed",),
    "failed": ("failed", "lost"),
    "timeout": ("timeout",),
    "retried": ("retry",),
    "cancelled": ("cancelled",),
}
# The class that colours a line, where it is not its name.
COLOURS = {"retried": "pending", "ready": "pending", "waiting": "cancelled"}


@page("/queues", title="Queues", key="q")
async def queues(visit: Visit) -> Shown:
    """Show all queues: those with something to look after first."""
    summary = await visit.service.summaries.get(visit.caller.queues)
    flows = await visit.service.series.flows()
    found = sorted(
        summary.queues, key=lambda each: (not each.paused, -(each.ready + each.waiting), each.name)
    )
    rows = [_row(each, flows.get(each.name), summary.at) for each in found[:MOST]]
    return Shown("queues/queues.html", queues=rows, more=max(0, len(found) - MOST))


@page("/queues/{name:path}", title="Queue", query=("step",))
async def queue(visit: Visit) -> Shown:
    """Show one queue: what waits in it for what, who serves it, and what was done."""
    name = check_name("queue", visit.params["name"])
    visit.caller.check_queue(name)
    step = visit.query.get("step", "minute")
    if step not in STEPS:
        raise invalid(f"step must be one of {', '.join(STEPS)}", field="step", value=step)
    service, engine = visit.service, visit.app.engine
    summary = await service.summaries.get(visit.caller.queues)
    found = next((each for each in summary.queues if each.name == name), None)
    view = found or QueueView(name=name, paused=False)
    flows = await service.series.flows()
    unfinished = await engine.list_jobs(
        JobFilter(queues=(name,), statuses=tuple(sorted(ACTIVE))), limit=LOOK, brief=True, look=LOOK
    )
    workers = [each for each in summary.workers if serves(each, name)]
    rates = await own_rates(service, visit.caller, queue=name, lane=None, limit=MOST_RATES)
    series = await service.series.read(queue=name, step=cast("StepName", step))
    return Shown(
        "queues/queue.html",
        title=f"Queue {name}",
        known=found is not None,
        queue=_row(view, flows.get(name), summary.at),
        by_task=Counter(job.task for job in unfinished.jobs).most_common(MOST_TASKS),
        all_counted=unfinished.cursor is None,
        counted=len(unfinished.jobs),
        unknown=[
            (task, number)
            for task, number in sorted(view.reserved.items())
            # Which tasks a worker knows is not told to a key for some queues.
            if not visit.caller.queues and not any(knows(each, task) for each in workers)
        ],
        lanes=await visit.app.lanes(queue=name, limit=MOST_LANES),
        most_lanes=MOST_LANES,
        rate=rate_key(name, "", rates),
        rates={each.lane: each for each in rates},
        workers=workers,
        findings=finding_links.shown(visit, finding_links.of_queue(summary.findings, name)),
        tabs=[(word, visit.again(step=each), each == step) for each, word in STEPS.items()],
        **_charts(series),
    )


def _row(view: QueueView, flow: QueueFlow | None, now: datetime) -> dict[str, Any]:
    flow = flow or QueueFlow()
    pending = view.ready + view.waiting
    drains = flow.drain_words(pending)
    return {
        "view": view,
        "flow": flow,
        "oldest": moment_before(now, view.oldest_age),
        "drains": "paused" if view.paused and pending else drains,
        "spark": sparkline(
            f"Pending jobs of {view.name} in the last hour", flow.pending, kind="pending"
        )
        if any(flow.pending)
        else "",
    }


def _charts(series: SeriesView) -> dict[str, Any]:
    """Return what was done and how deep the queue was: as pictures, and as rows of a table."""
    points = series.points
    done = {
        name: [sum(point.outcomes.get(each, 0) for each in counted) for point in points]
        for name, counted in OUTCOMES.items()
    }
    done = {name: values for name, values in done.items() if any(values)}
    depth = {
        state: [getattr(point.depth, state) if point.depth else None for point in points]
        for state in ("ready", "waiting", "scheduled", "running")
    }

    def picture(title: str, lines: dict[str, Any], **options: Any) -> Markup | str:
        if not any(any(values) for values in lines.values()):
            return ""
        drawn = [Line(name, COLOURS.get(name, name), values) for name, values in lines.items()]
        return chart(title, drawn, series.since, series.until, **options)

    rows = [
        (point.at, [done[name][number] for name in done], [depth[name][number] for name in depth])
        for number, point in enumerate(points)
        if point.outcomes or (point.depth and any(depth[name][number] for name in depth))
    ]
    return {
        "throughput": picture(f"Attempts per {series.step}, by how they ended", done, stacked=True),
        "depths": picture("Jobs in the queue, by state", depth),
        "done": list(done),
        "states": list(depth),
        "colours": COLOURS,
        "numbers": rows[::-1],
        "step": series.step,
    }
