"""Queues and lanes: list them; pause and resume queues."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import NAME, EmptyRequest, PauseRequest
from headrace.api_types.responses import QueuePaused
from headrace.model.views import LaneView, QueueView
from headrace.server.auth.bound_key_counts import own_depths
from headrace.server.auth.reach import Reach
from headrace.server.filters import Limit, Text
from headrace.server.http.body import read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)

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
    call.check_to_come(asked.until)
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
