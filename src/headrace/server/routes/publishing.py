"""Published events: their types, and the destinations that they are delivered to."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.job import JobBody
from headrace.api_types.publishing import (
    DestinationRemoved,
    DestinationRequest,
    DestinationView,
    EventTypeView,
    NewDestination,
    RotateRequest,
)
from headrace.api_types.requests import NAME, EmptyRequest
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)

Name = Annotated[str, Path(pattern=NAME)]
WHAT = "destinations"


@reading(
    "GET /event-types", "List the types of published events", page("event_types", EventTypeView)
)
async def event_types(call: Call) -> Response:
    """With the JSON schema of their data. The version is part of the name."""
    return listed("event_types", await call.unrestricted("event types").app.event_types())


@reading("GET /destinations", "List destinations", page(WHAT, DestinationView), name="find")
async def find_destinations(call: Call) -> Response:
    """Where published events go; never the secrets."""
    return listed(WHAT, await call.unrestricted(WHAT).app.destinations())


@reading("GET /destinations/{name}", "Show a destination", DestinationView, name="show")
async def show_destination(call: Call, name: Name) -> Response:
    """Without its secrets."""
    return answer(await call.unrestricted(WHAT).app.destination(name))


@steering(
    "PUT /destinations/{name}", "Add or change a destination", NewDestination, DestinationRequest
)
async def put(call: Call, name: Name) -> Response:
    """`secret` is in the answer where it is new, and never shown again."""
    app = call.unrestricted(WHAT).app
    asked = await read_json(call, DestinationRequest)
    made = await app.put_destination(name, source="api", **msgspec.structs.asdict(asked))
    await call.changed("destination.put", name, kind=asked.kind)
    return answer(made)


@steering("DELETE /destinations/{name}", "Remove a destination", DestinationRemoved, name="remove")
async def remove_destination(call: Call, name: Name) -> Response:
    """What was not delivered there yet is dropped."""
    await call.unrestricted(WHAT).app.remove_destination(name)
    await call.changed("destination.remove", name)
    return answer(DestinationRemoved(name))


@steering("POST /destinations/{name}/enable", "Enable a destination", DestinationView, EmptyRequest)
async def enable(call: Call, name: Name) -> Response:
    """Events go there again. What was published meanwhile is not made up for."""
    return await _enable(call, name, enabled=True)


@steering(
    "POST /destinations/{name}/disable", "Disable a destination", DestinationView, EmptyRequest
)
async def disable(call: Call, name: Name) -> Response:
    """No event goes there. Deliveries that wait fail, and can be retried."""
    return await _enable(call, name, enabled=False)


@steering(
    "POST /destinations/{name}/rotate",
    "Rotate the secret of a webhook",
    NewDestination,
    RotateRequest,
)
async def rotate(call: Call, name: Name) -> Response:
    """Both secrets sign until the rotation is finished."""
    app = call.unrestricted(WHAT).app
    asked = await read_optional_json(call, RotateRequest)
    made = await app.rotate_destination(name, finish=asked.finish)
    await call.changed("destination.rotate", name, finish=asked.finish)
    return answer(made)


@steering(
    "POST /destinations/{name}/test",
    "Send a test event to a destination",
    JobBody,
    EmptyRequest,
    status=202,
)
async def test(call: Call, name: Name) -> Response:
    """The answer is the job that delivers it, which is not tried again."""
    service = call.unrestricted(WHAT)
    await read_optional_json(call, EmptyRequest)
    job = await service.app.test_destination(name)
    await call.changed("destination.test", name, job_id=job.id)
    return answer(service.answers.job(job), 202)


async def _enable(call: Call, name: str, *, enabled: bool) -> Response:
    app = call.unrestricted(WHAT).app
    await read_optional_json(call, EmptyRequest)
    view = await app.enable_destination(name, enabled)
    await call.changed("destination.enable" if enabled else "destination.disable", name)
    return answer(view)
