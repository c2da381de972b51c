"""Signals: events from outside, for jobs that wait for them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import TEXT
from headrace.api_types.responses import Delivered
from headrace.server.auth.guard import caller_of, router
from headrace.server.http.body import read_optional_json
from headrace.server.openapi.registry import JSON, answers
from headrace.server.responses import answer
from headrace.server.routes.job import JobId, the_job
from headrace.server.service import service_of

writing = router("write")

EventName = Annotated[str, Path(pattern=TEXT)]
_ANY_JSON = {"requestBody": {"required": False, "content": {JSON: {"schema": {}}}}}


@writing.post(
    "/jobs/{job_id}/events/{event}",
    summary="Deliver an event to a job",
    openapi_extra=_ANY_JSON,
    **answers(Delivered),
)
async def signal(request: Request, job_id: JobId, event: EventName) -> Response:
    """The body, any JSON, is what `ctx.wait` returns; without one it is null. The first event of a
    name counts: `delivery` is `delivered`, or `already` if there was one. 409 if it is finished.
    """
    service, caller = service_of(request), caller_of(request)
    value = await read_optional_json(request, object, empty=b"null")
    job = await the_job(request, job_id)
    delivery = await service.app.signal(job.id, event, value)
    if delivery != "delivered":
        return answer(Delivered(job.id, event, "already"))
    await service.audit.changed(caller, "job.signal", job.id, event=event)
    return answer(Delivered(job.id, event, delivery))
