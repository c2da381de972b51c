"""Lanes, workers, dispatchers, tasks, and what runs now."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import NAME
from headrace.api_types.responses import DispatcherView, RunningAnswer, TaskView
from headrace.model.views import LaneView
from headrace.model.worker import Worker
from headrace.monitor.dispatchers import dispatchers
from headrace.monitor.running import running as find_running
from headrace.server.auth.guard import caller_of, router
from headrace.server.filters import Limit, Text
from headrace.server.openapi.bodies import task_view
from headrace.server.openapi.registry import answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import service_of

reading = router("read")


@reading.get("/lanes", summary="List lanes", **answers(page("lanes", LaneView)))
async def lanes(
    request: Request,
    queue: Annotated[str | None, Query(pattern=NAME)] = None,
    lane: Text = None,
    limit: Limit = 100,
) -> Response:
    """Lanes with holders or waiting jobs, those for which the most wait first."""
    service, caller = service_of(request), caller_of(request)
    if queue is not None:
        caller.check_queue(queue)
    await service.app.open()
    found = await service.app.engine.lanes(queue=queue, lane=lane, limit=limit)
    return listed("lanes", [each for each in found if caller.may_touch(each.queue)])


@reading.get("/workers", summary="List workers", **answers(page("workers", Worker)))
async def workers(request: Request) -> Response:
    """Workers, alive ones first."""
    service, caller = service_of(request), caller_of(request)
    await service.app.open()
    found = await service.app.engine.workers()
    if caller.queues:
        found = [each for each in found if not each.queues or caller.queues & set(each.queues)]
        for each in found:
            each.tasks = None  # some are of other queues
    return listed("workers", found)


@reading.get(
    "/dispatchers", summary="List dispatchers", **answers(page("dispatchers", DispatcherView))
)
async def find_dispatchers(request: Request) -> Response:
    """Cron and event dispatchers, when they last reported, and how far behind they are."""
    service = service_of(request)
    caller_of(request).check_unrestricted("dispatchers")
    await service.app.open()
    found = await dispatchers(service.app.engine, service.app.clock.utcnow())
    return listed("dispatchers", found)


@reading.get("/tasks", summary="List tasks", **answers(page("tasks", TaskView)))
async def tasks(request: Request) -> Response:
    """The tasks that can be enqueued here: their arguments as JSON schema, and their policy."""
    known = service_of(request).app.tasks
    return listed("tasks", [task_view(known[name]) for name in sorted(known)])


@reading.get(
    "/api/v2/jobs/running", summary="What runs now, and what waits", **answers(RunningAnswer)
)
async def running(request: Request) -> Response:
    """Running jobs, the longest first, and how many are queued in each queue."""
    service, caller = service_of(request), caller_of(request)
    app = service.app
    await app.open()
    found = await find_running(app.engine, app.clock.now(), queues=caller.queues)
    return answer(found.answer())
