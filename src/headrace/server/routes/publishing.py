"""Published events: their types, and the destinations that they are delivered to."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

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
from headrace.server.auth.guard import caller_of, router
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import Service, service_of

reading, steering = router("read"), router("admin")

Name = Annotated[str, Path(pattern=NAME)]


@reading.get(
    "/event-types",
    summary="List the types of published events",
    **answers(page("event_types", EventTypeView)),
)
async def event_types(request: Request) -> Response:
    """With the JSON schema of their data. The version is part of the name."""
    return listed("event_types", await service_of(request).app.event_types())


@reading.get(
    "/destinations", summary="List destinations", **answers(page("destinations", DestinationView))
)
async def find(request: Request) -> Response:
    """Where published events go; never the secrets."""
    return listed("destinations", await _service(request).app.destinations())


@reading.get("/destinations/{name}", summary="Show a destination", **answers(DestinationView))
async def show(request: Request, name: Name) -> Response:
    """Without its secrets."""
    return answer(await _service(request).app.destination(name))


@steering.put(
    "/destinations/{name}",
    summary="Add or change a destination",
    **answers(NewDestination),
    **accepts(DestinationRequest),
)
async def put(request: Request, name: Name) -> Response:
    """`secret` is in the answer where it is new, and never shown again."""
    service, caller = _service(request), caller_of(request)
    asked = await read_json(request, DestinationRequest)
    made = await service.app.put_destination(name, source="api", **msgspec.structs.asdict(asked))
    await service.audit.changed(caller, "destination.put", name, kind=asked.kind)
    return answer(made)


@steering.delete(
    "/destinations/{name}", summary="Remove a destination", **answers(DestinationRemoved)
)
async def remove(request: Request, name: Name) -> Response:
    """What was not delivered there yet is dropped."""
    service, caller = _service(request), caller_of(request)
    await service.app.remove_destination(name)
    await service.audit.changed(caller, "destination.remove", name)
    return answer(DestinationRemoved(name))


@steering.post(
    "/destinations/{name}/enable",
    summary="Enable a destination",
    **answers(DestinationView),
    **accepts(EmptyRequest, optional=True),
)
async def enable(request: Request, name: Name) -> Response:
    """Events go there again. What was published meanwhile is not made up for."""
    return await _enable(request, name, enabled=True)


@steering.post(
    "/destinations/{name}/disable",
    summary="Disable a destination",
    **answers(DestinationView),
    **accepts(EmptyRequest, optional=True),
)
async def disable(request: Request, name: Name) -> Response:
    """No event goes there. Deliveries that wait fail, and can be retried."""
    return await _enable(request, name, enabled=False)


@steering.post(
    "/destinations/{name}/rotate",
    summary="Rotate the secret of a webhook",
    **answers(NewDestination),
    **accepts(RotateRequest, optional=True),
)
async def rotate(request: Request, name: Name) -> Response:
    """Both secrets sign until the rotation is finished."""
    service, caller = _service(request), caller_of(request)
    asked = await read_optional_json(request, RotateRequest)
    made = await service.app.rotate_destination(name, finish=asked.finish)
    await service.audit.changed(caller, "destination.rotate", name, finish=asked.finish)
    return answer(made)


@steering.post(
    "/destinations/{name}/test",
    summary="Send a test event to a destination",
    **answers(JobBody, 202),
    **accepts(EmptyRequest, optional=True),
)
async def test(request: Request, name: Name) -> Response:
    """The answer is the job that delivers it, which is not tried again."""
    service, caller = _service(request), caller_of(request)
    await read_optional_json(request, EmptyRequest)
    job = await service.app.test_destination(name)
    await service.audit.changed(caller, "destination.test", name, job_id=job.id)
    return answer(service.answers.job(job), 202)


def _service(request: Request) -> Service:
    caller_of(request).check_unrestricted("destinations")
    return service_of(request)


async def _enable(request: Request, name: str, *, enabled: bool) -> Response:
    service, caller = _service(request), caller_of(request)
    await read_optional_json(request, EmptyRequest)
    view = await service.app.enable_destination(name, enabled)
    action = "destination.enable" if enabled else "destination.disable"
    await service.audit.changed(caller, action, name)
    return answer(view)
