"""Queues, lanes, workers, dispatchers, tasks, what runs now; and the server itself."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import NAME, EmptyRequest, PauseRequest
from headrace.api_types.responses import (
    DispatcherView,
    Health,
    QueuePaused,
    RunningAnswer,
    TaskView,
)
from headrace.api_types.series import SeriesView, StepName
from headrace.model.views import LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.findings.facts import workers_within
from headrace.monitor.running import running as find_running
from headrace.monitor.snapshot import dispatchers
from headrace.server.auth.own_numbers import own_depths
from headrace.server.auth.reach import Reach
from headrace.server.bundles.route import BundleRoute
from headrace.server.filters import Limit, Text, Time, parse_time
from headrace.server.http.body import read_optional_json
from headrace.server.http.problems import Refused
from headrace.server.metrics import exposition
from headrace.server.openapi.bodies import task_view
from headrace.server.openapi.document import document as document_of
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routes.workflows import usable_workflows
from headrace.server.routing import Call, Router
from headrace.server.series_errors import SeriesErrors

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)
open_, local = Router("open", routes), Router("local", routes)

Name = Annotated[str, Path(pattern=NAME)]


@reading("GET /queues", "List queues", page("queues", QueueView))
async def find(call: Call) -> Response:
    """Every queue that was used or paused, with its depth and the age of its oldest job, and by
    whom it was paused.
    """
    queues = await call.service.app.queues()
    return listed("queues", await own_depths(call.service, call.caller.queues, queues))


@steering("POST /queues/{name}/pause", "Pause a queue", QueuePaused, PauseRequest)
async def pause(call: Call, name: Name) -> Response:
    """Its jobs are not claimed any more; running ones go on, new ones are accepted. With `until`,
    or `for` seconds, it is resumed by itself.
    """
    asked = await read_optional_json(call, PauseRequest)
    call.caller.check_queue(name)
    if asked.until is not None and asked.until <= call.service.app.clock.utcnow():
        # The request is fine; it comes too late.
        until = asked.until.isoformat()
        told = f"until {until} has passed; choose a time to come"
        raise Refused(409, "time-passed", told, field="until", value=until)
    paused = await call.service.app.pause(
        name, **msgspec.structs.asdict(asked), by=call.caller.name
    )
    detail = {"reason": paused.paused_reason, "until": paused.paused_until}
    given = {field: value for field, value in detail.items() if value is not None}
    await call.changed("queue.pause", name, **given)
    return answer(paused)


@steering("POST /queues/{name}/resume", "Resume a queue", QueuePaused, EmptyRequest)
async def resume(call: Call, name: Name) -> Response:
    """Its jobs are claimed again."""
    await read_optional_json(call, EmptyRequest)
    call.caller.check_queue(name)
    resumed = await call.service.app.resume(name)
    await call.changed("queue.resume", name)
    return answer(resumed)


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
    # One queue after the other: those of others must not take the room in the page.
    asked: list[str | None] = (
        [queue] if queue is not None else [*sorted(call.caller.queues)] or [None]
    )
    app = call.service.app
    found = [
        lane_view
        for each in asked
        for lane_view in await app.lanes(queue=each, lane=lane, limit=limit)
    ]
    found.sort(key=lambda each: (-each.waiting, each.queue, each.lane))
    return listed("lanes", await Reach(call.service, call.caller).own_holders(found[:limit]))


@reading("GET /workers", "List workers", page("workers", Worker))
async def workers(call: Call) -> Response:
    """Workers, alive ones first."""
    found = await call.service.app.workers()
    return listed("workers", workers_within(found, call.caller.queues))


@reading("GET /dispatchers", "List dispatchers", page("dispatchers", DispatcherView))
async def find_dispatchers(call: Call) -> Response:
    """Cron and event dispatchers, when they last reported, and how far behind they are."""
    app = call.unrestricted("dispatchers").app
    await app.open()
    return listed("dispatchers", await dispatchers(app.engine, app.clock.utcnow()))


@reading("GET /tasks", "List tasks", page("tasks", TaskView))
async def tasks(call: Call) -> Response:
    """The tasks that can be enqueued here: their arguments as JSON schema, and their policy."""
    return listed("tasks", map(task_view, call.reach.tasks().values()))


@reading("GET /api/v2/jobs/running", "What runs now, and what waits", RunningAnswer)
async def running(call: Call) -> Response:
    """Running jobs, the longest first, and how many are queued in each queue."""
    app = call.service.app
    await app.open()
    depths = await own_depths(call.service, call.caller.queues, await app.engine.queues())
    found = await find_running(
        app.engine, app.clock.now(), queues=call.caller.queues, depths=depths
    )
    found = msgspec.structs.replace(found, jobs=await call.reach.visible(found.jobs))
    return answer(found.answer())


@reading("GET /metrics/series", "Numbers over time", SeriesView)
async def series(  # noqa: PLR0917 - FastAPI gives them by name
    call: Call,
    task: Annotated[str | None, Query(pattern=NAME)] = None,
    queue: Annotated[str | None, Query(pattern=NAME)] = None,
    since: Time = None,
    until: Time = None,
    step: StepName = "minute",
) -> Response:
    """Attempts by outcome, how long they waited and ran, and how deep queues were: by minute for a
    day, by hour for two weeks, by day for 400 days. They outlast workers and servers.
    """
    if queue is not None:
        call.caller.check_queue(queue)
    found = await call.service.series.read(
        task=task,
        queue=queue,
        since=parse_time("since", since),
        until=parse_time("until", until),
        step=step,
        queues=call.caller.queues,
    )
    return answer(await call.service.part(SeriesErrors).shown(found, call.caller))


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
    document = dict(call.app.openapi() if not call.caller.queues else _own_document(call))
    if root := call.scope.get("root_path"):
        document["servers"] = [{"url": root}]
    return answer(document)


def _own_document(call: Call) -> dict[str, Any]:
    """Return the document for a key for some queues: its tasks, its workflows, its bundles."""
    return document_of(
        call.app,
        call.reach.tasks(),
        lambda: usable_workflows(call.service, call.caller),
        lambda route: not isinstance(route, BundleRoute) or route.is_for(call.caller),
    )
