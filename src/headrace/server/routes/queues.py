"""Queues: their depth, pause and resume."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import NAME, EmptyRequest
from headrace.api_types.responses import QueuePaused
from headrace.model.names import check_name
from headrace.model.views import QueueView
from headrace.server.auth.guard import caller_of, router
from headrace.server.http.body import read_optional_json
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import service_of

reading, steering = router("read"), router("admin")

Name = Annotated[str, Path(pattern=NAME)]


@reading.get("/queues", summary="List queues", **answers(page("queues", QueueView)))
async def find(request: Request) -> Response:
    """Every queue that was used or paused, with its depth and the age of its oldest job."""
    service, caller = service_of(request), caller_of(request)
    await service.app.open()
    queues = await service.app.engine.queues()
    return listed("queues", [queue for queue in queues if caller.may_touch(queue.name)])


@steering.post(
    "/queues/{name}/pause",
    summary="Pause a queue",
    **answers(QueuePaused),
    **accepts(EmptyRequest, optional=True),
)
async def pause(request: Request, name: Name) -> Response:
    """Its jobs are not claimed any more; running ones go on, new ones are accepted."""
    return await _set(request, name, paused=True)


@steering.post(
    "/queues/{name}/resume",
    summary="Resume a queue",
    **answers(QueuePaused),
    **accepts(EmptyRequest, optional=True),
)
async def resume(request: Request, name: Name) -> Response:
    """Its jobs are claimed again."""
    return await _set(request, name, paused=False)


async def _set(request: Request, name: str, *, paused: bool) -> Response:
    service, caller = service_of(request), caller_of(request)
    await read_optional_json(request, EmptyRequest)
    caller.check_queue(check_name("queue", name))
    await service.app.open()
    await service.app.engine.pause(name, paused)
    await service.audit.changed(caller, "queue.pause" if paused else "queue.resume", name)
    return answer(QueuePaused(name, paused))
