"""Queues, lanes, workers, dispatchers, tasks, what runs now; and the server itself."""

from __future__ import annotations

from html import escape
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import NAME, EmptyRequest
from headrace.api_types.responses import (
    DispatcherView,
    Health,
    QueuePaused,
    RunningAnswer,
    TaskView,
)
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.running import running as find_running
from headrace.monitor.snapshot import dispatchers
from headrace.server.filters import Limit, Text
from headrace.server.http.body import read_optional_json
from headrace.server.metrics import exposition
from headrace.server.openapi.bodies import task_view
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)
open_, local = Router("open", routes), Router("local", routes)

Name = Annotated[str, Path(pattern=NAME)]


@reading("GET /queues", "List queues", page("queues", QueueView))
async def find(call: Call) -> Response:
    """Every queue that was used or paused, with its depth and the age of its oldest job."""
    queues = await call.service.app.queues()
    return listed("queues", [queue for queue in queues if call.caller.may_touch(queue.name)])


@steering("POST /queues/{name}/pause", "Pause a queue", QueuePaused, EmptyRequest)
async def pause(call: Call, name: Name) -> Response:
    """Its jobs are not claimed any more; running ones go on, new ones are accepted."""
    return await _set(call, name, paused=True)


@steering("POST /queues/{name}/resume", "Resume a queue", QueuePaused, EmptyRequest)
async def resume(call: Call, name: Name) -> Response:
    """Its jobs are claimed again."""
    return await _set(call, name, paused=False)


async def _set(call: Call, name: str, *, paused: bool) -> Response:
    await read_optional_json(call, EmptyRequest)
    call.caller.check_queue(name)
    app = call.service.app
    await (app.pause(name) if paused else app.resume(name))
    await call.changed("queue.pause" if paused else "queue.resume", name)
    return answer(QueuePaused(name, paused))


@reading("GET /lanes", "List lanes", page("lanes", LaneView))
async def lanes(
    call: Call,
    queue: Annotated[str | None, Query(pattern=NAME)] = None,
    lane: Text = None,
    limit: Limit = 100,
) -> Response:
    """Lanes with holders or waiting jobs, those for which the most wait first."""
    if queue is not None:
        call.caller.check_queue(queue)
    found = await call.service.app.lanes(queue=queue, lane=lane, limit=limit)
    return listed("lanes", [each for each in found if call.caller.may_touch(each.queue)])


@reading("GET /workers", "List workers", page("workers", Worker))
async def workers(call: Call) -> Response:
    """Workers, alive ones first."""
    queues = call.caller.queues
    found = await call.service.app.workers()
    if queues:
        found = [each for each in found if not each.queues or queues & set(each.queues)]
        for each in found:
            each.tasks = None  # some are of other queues
    return listed("workers", found)


@reading("GET /dispatchers", "List dispatchers", page("dispatchers", DispatcherView))
async def find_dispatchers(call: Call) -> Response:
    """Cron and event dispatchers, when they last reported, and how far behind they are."""
    app = call.unrestricted("dispatchers").app
    await app.open()
    return listed("dispatchers", await dispatchers(app.engine, app.clock.utcnow()))


@reading("GET /tasks", "List tasks", page("tasks", TaskView))
async def tasks(call: Call) -> Response:
    """The tasks that can be enqueued here: their arguments as JSON schema, and their policy."""
    known = call.service.app.tasks
    return listed("tasks", [task_view(known[name]) for name in sorted(known)])


@reading("GET /api/v2/jobs/running", "What runs now, and what waits", RunningAnswer)
async def running(call: Call) -> Response:
    """Running jobs, the longest first, and how many are queued in each queue."""
    app = call.service.app
    await app.open()
    found = await find_running(app.engine, app.clock.now(), queues=call.caller.queues)
    return answer(found.answer())


# -- the server itself -------------------------------------------------------------------------


@open_("GET /healthz", "Is the process there?", Health)
async def healthz(_: Call) -> Response:
    """200 as long as the process responds at all."""
    return answer(Health())


@open_("GET /readyz", "Can it work?", Health)
async def readyz(call: Call) -> Response:
    """200 if the engine answers, else 503."""
    await call.service.snapshots.get()
    return answer(Health())


@local("GET /metrics", "Numbers for Prometheus", {"type": "string"}, media_type="text/plain")
async def metrics(call: Call) -> Response:
    """The text format of Prometheus; a second old at most."""
    content, kind = await exposition(call.unrestricted("metrics"))
    return Response(content, headers={"Content-Type": kind})


@local("GET /openapi.json", "This document", {"type": "object"})
async def openapi(call: Call) -> Response:
    """The API as OpenAPI 3.1."""
    document = dict(call.app.openapi())
    if root := call.scope.get("root_path"):
        document["servers"] = [{"url": root}]
    return answer(document)


@local("GET /docs", "This document for people", {}, responses=None, response_class=HTMLResponse)
async def docs(call: Call) -> Response:
    """A page that lists every route. It loads nothing from anywhere."""
    return HTMLResponse(_page(call.app.openapi()))


def _page(document: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(route.get('x-access', ''))}</td>"
        f"<td><b>{escape(route['summary'])}.</b> {escape(route.get('description', ''))}</td></tr>"
        for path, routes in document["paths"].items()
        for method, route in routes.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Headrace API</title>"
        "<h1>Headrace API</h1><p>The whole of it, with every field: "
        "<a href=openapi.json>openapi.json</a></p><table border=1 cellpadding=6 "
        f"cellspacing=0><tr><th>method<th>path<th>needs<th>what</tr>{rows}</table></html>"
    )
