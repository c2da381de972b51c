"""Circuit breakers: list the open ones; open and close them by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.breakers import BreakerClosed, CloseBreakerRequest, OpenBreakerRequest
from headrace.api_types.requests import NAME
from headrace.errors import InvalidInput
from headrace.model.limits.breaker import BreakerView
from headrace.server.auth.caller import Caller
from headrace.server.filters import Text
from headrace.server.http.body import read_json
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)


@reading("GET /breakers", "List open circuit breakers", page("breakers", BreakerView))
async def find(
    call: Call, queue: Annotated[str | None, Query(pattern=NAME)] = None, lane: Text = None
) -> Response:
    """The circuit breakers that are open, what has opened them, and when a job is tried."""
    if queue is not None:
        call.caller.check_queue(queue)
    found = await call.service.app.breakers(queue=queue, lane=lane)
    return listed("breakers", own_breakers(call.caller, found))


def own_breakers(caller: Caller, found: Sequence[BreakerView]) -> list[BreakerView]:
    """Return what a caller may see of open breakers: those of its queues."""
    return [each for each in found if caller.may_touch(each.queue)]


@steering("POST /breakers/open", "Open a circuit breaker", BreakerView, OpenBreakerRequest)
async def open_breaker(call: Call) -> Response:
    """Nothing more of the lane is started; after the pause one job is tried. Running ones go on."""
    asked = await read_json(call, OpenBreakerRequest)
    call.caller.check_queue(asked.queue)
    try:
        opened = await call.service.app.open_breaker(
            asked.queue, asked.lane, pause=asked.pause, reason=asked.reason, by=call.caller.name
        )
    except InvalidInput as error:
        # The request is fine; no task of this server has such a breaker.
        raise Refused(409, "invalid-input", str(error), field="lane", value=asked.lane) from None
    detail = {} if asked.reason is None else {"reason": asked.reason}
    await call.changed(
        "breaker.open", f"{opened.queue}/{opened.lane}", pause=opened.pause, **detail
    )
    return answer(opened)


@steering("POST /breakers/close", "Close a circuit breaker", BreakerClosed, CloseBreakerRequest)
async def close_breaker(call: Call) -> Response:
    """Jobs of the lane are started again, and its failures are forgotten."""
    asked = await read_json(call, CloseBreakerRequest)
    call.caller.check_queue(asked.queue)
    was_open = await call.service.app.close_breaker(asked.queue, asked.lane)
    if was_open:
        await call.changed("breaker.close", f"{asked.queue}/{asked.lane}")
    return answer(BreakerClosed(asked.queue, asked.lane, was_open))
