"""Rates: list them, set those of queues and lanes, and hold queues and lanes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.requests import NAME, HoldRequest, RateRequest
from headrace.errors import InvalidSetting
from headrace.model.limits.rate import RateView, as_rate
from headrace.model.names import TEXT_LIMIT
from headrace.server.auth.bound_key_counts import own_rates
from headrace.server.filters import Limit, Text
from headrace.server.http.body import read_json
from headrace.server.http.problems import invalid
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)

Name = Annotated[str, Path(pattern=NAME)]
AnyLane = Annotated[
    str | None,
    Query(
        pattern=rf"^[^\x00-\x1f\x7f]{{0,{TEXT_LIMIT}}}$",
        description="Only this lane; empty: only the rates of queues themselves.",
    ),
]


@reading("GET /rates", "List rates and holds", page("rates", RateView))
async def find(
    call: Call,
    queue: Annotated[str | None, Query(pattern=NAME)] = None,
    lane: AnyLane = None,
    limit: Limit = 100,
) -> Response:
    """The queues and lanes that have a rate or are held, by name; the lane "" is the queue itself.
    With how many of their jobs wait, when the next may start, until when and by whom it is held.
    """
    found = await own_rates(call.service, call.caller, queue=queue, lane=lane, limit=limit)
    return listed("rates", found)


@steering("PUT /queues/{name}/rate", "Set a rate", RateView, RateRequest, name="set")
async def set_rate(call: Call, name: Name, lane: Text = None) -> Response:
    """At most so many jobs of a lane start in a time; without a lane it is the queue, and all its
    jobs count. It counts whatever jobs say, until it is removed.
    """
    asked = await read_json(call, RateRequest)
    call.caller.check_queue(name)
    try:
        rate = as_rate(asked.rate, asked.burst)
    except InvalidSetting as error:
        raise invalid(str(error), field="rate", value=asked.rate) from None
    view = await call.service.app.set_rate(name, rate, lane=lane or "")
    await call.changed("rate.set", target(name, lane), rate=rate.text, burst=rate.burst)
    return answer(view)


@steering("DELETE /queues/{name}/rate", "Remove a rate", RateView, name="remove")
async def remove_rate(call: Call, name: Name, lane: Text = None) -> Response:
    """What was set counts no longer: what jobs say does, if they do. Removing twice is fine."""
    call.caller.check_queue(name)
    view = await call.service.app.remove_rate(name, lane=lane or "")
    await call.changed("rate.remove", target(name, lane))
    return answer(view)


@steering("PUT /queues/{name}/hold", "Hold a lane or a queue", RateView, HoldRequest)
async def hold(call: Call, name: Name, lane: Text = None) -> Response:
    """Nothing of a lane, or of a queue, starts before a time; running jobs go on. A second hold
    replaces the first.
    """
    asked = await read_json(call, HoldRequest)
    call.caller.check_queue(name)
    call.check_to_come(asked.until)
    view = await call.service.app.hold(
        name,
        lane=lane or "",
        until=asked.until,
        duration=asked.duration,
        reason=asked.reason,
        by=call.caller.name,
    )
    why = {} if view.held_reason is None else {"reason": view.held_reason}
    await call.changed("rate.hold", target(name, lane), until=view.held_until, **why)
    return answer(view)


@steering("DELETE /queues/{name}/hold", "End a hold", RateView, name="release")
async def release_hold(call: Call, name: Name, lane: Text = None) -> Response:
    """Its jobs may start again, without a burst. Ending twice is fine."""
    call.caller.check_queue(name)
    view = await call.service.app.release_hold(name, lane=lane or "")
    await call.changed("rate.release", target(name, lane))
    return answer(view)


def target(queue: str, lane: str | None) -> str:
    """What the audit log calls a lane of a queue, or a queue."""
    return f"{queue}/{lane}" if lane else queue
