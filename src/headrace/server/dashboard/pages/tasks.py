"""Tasks: what can be run, how it goes, and a form that runs one once."""

from __future__ import annotations

import inspect
from typing import Any

from headrace.server.dashboard.jobs.form import Typed
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.tasks.form import TaskForm
from headrace.server.dashboard.tasks.numbers import (
    OUTCOMES,
    Numbers,
    TaskErrors,
    all_tasks,
    policy_words,
    run_times,
    short_words,
    spans,
    throughput,
)
from headrace.server.dashboard.visit import Visit
from headrace.server.http.problems import Refused
from headrace.suggest import did_you_mean
from headrace.task import Task

MOST = 500


@page("/tasks", title="Tasks", key="t")
async def tasks(visit: Visit) -> Shown:
    """Show tasks by name. A key for some queues sees those of its queues."""
    found = await all_tasks(visit)
    shown = [found[name] for name in sorted(found)][:MOST]
    known = visit.app.tasks
    return Shown(
        "tasks/tasks.html",
        tasks=shown,
        more=len(found) - len(shown),
        policies={each.name: short_words(known[each.name]) for each in shown if each.known},
    )


@page("/tasks/{name:path}", title="Task")
async def task(visit: Visit) -> Shown:
    """Show one task; of one that this server does not know, what workers did."""
    name = visit.params["name"]
    found = await _found(visit, name)
    known = visit.app.tasks.get(name) if found.known else None
    ended = found.counters.outcomes()
    series = await visit.service.series.read(task=name, queues=visit.caller.queues)
    return Shown(
        "tasks/task.html",
        title=name,
        name=name,
        numbers=found,
        task=known,
        form=None if known is None else TaskForm(known, visit.redactor),
        typed=Typed(),
        problem=None,
        description=None if known is None else inspect.getdoc(known.function),
        policy=[] if known is None else policy_words(known),
        outcomes=[(word, kind, ended.get(outcome, 0)) for outcome, word, kind in OUTCOMES],
        throughput=throughput(series) if found.attempts else None,
        wait=spans("Waited, by minute", series, lambda point: point.wait),
        run=spans("Ran, by minute", series, lambda point: point.run),
        run_times=run_times(found.counters.run),
        errors=await visit.service.part(TaskErrors).get(visit, name),
    )


async def _found(visit: Visit, name: str) -> Numbers:
    names = await all_tasks(visit)
    if name not in names:
        raise Refused(
            404,
            "unknown-task",
            f"no task {name[:100]!r} is known here, and none of this name ran in the last hour; "
            f"{did_you_mean(name, names)}",
            remedy="see all tasks",
        )
    return names[name]


async def known_task(visit: Visit, name: str) -> Task[..., Any]:
    """Return a task that can be run from here. One of another queue does not exist for a caller,
    and the refusal names none.
    """
    found = await _found(visit, name)
    if visit.caller.queues and not found.known:
        raise Refused(404, "unknown-task", f"no task {name[:100]!r} can be run from here")
    return visit.app.find_task(name)
