"""How things are and what is wrong; errors in groups."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.monitoring import ErrorGroups, Summary
from headrace.model.job import JobFilter
from headrace.monitor.errors import error_groups, hide
from headrace.server.filters import failure_filter
from headrace.server.responses import answer
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading = Router("read", routes)


@reading("GET /summary", "How things are, and what is wrong", Summary)
async def summary(call: Call) -> Response:
    """Queues, workers, the longest lanes and dispatchers, and what is wrong in sentences, each with
    what to do about it. At most a second old. A key for some queues sees only those.
    """
    return answer(await call.service.summaries.get(call.caller.queues))


@reading("GET /errors", "Failed jobs in groups", ErrorGroups)
async def errors(call: Call, wanted: Annotated[JobFilter, Depends(failure_filter)]) -> Response:
    """By task, type of the error, and fingerprint of its message: the newest 5,000 that failed or
    timed out. `since` and `until` are on when they finished.
    """
    service = call.service
    await service.app.open()
    engine = service.app.engine
    wanted = call.caller.narrowed(wanted)
    found = await error_groups(engine, wanted, visible=call.reach.visible)
    return answer(await hide(engine, found, service.answers.error))
