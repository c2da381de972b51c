"""How things are: what is wrong, errors in groups, what runs now, numbers over time."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Depends, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.monitoring import ErrorGroups, Summary
from headrace.api_types.requests import NAME
from headrace.api_types.responses import RunningAnswer
from headrace.api_types.series import SeriesView, StepName
from headrace.model.job import JobFilter
from headrace.monitor.errors import error_groups, hide
from headrace.monitor.running import running as find_running
from headrace.server.auth.bound_key_counts import own_depths
from headrace.server.filters import Time, failure_filter, parse_time
from headrace.server.responses import answer
from headrace.server.routing import Call, Router
from headrace.server.series_errors import SeriesErrors

routes: list[BaseRoute] = []
reading = Router("read", routes)


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
