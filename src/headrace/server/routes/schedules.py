"""Schedules: list, show, add, change, remove, enable, trigger."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Path, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.job import JobBody
from headrace.api_types.requests import NAME, EmptyRequest, ScheduleRequest, TriggerRequest
from headrace.api_types.responses import ScheduleRemoved, ScheduleTimes, ScheduleView
from headrace.errors import InvalidInput
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router
from headrace.server.service import Service

routes: list[BaseRoute] = []
reading, steering = Router("read", routes), Router("admin", routes)

Name = Annotated[str, Path(pattern=NAME)]


@reading("GET /schedules", "List schedules", page("schedules", ScheduleView), name="find")
async def find_schedules(call: Call) -> Response:
    """Every schedule in words, with its next times and its last jobs."""
    service = call.unrestricted("schedules")
    found = await service.app.list_schedules()
    return listed("schedules", [_redacted(service, each) for each in found])


@reading("GET /schedules/{name}", "Show a schedule", ScheduleView, name="show")
async def show_schedule(call: Call, name: Name) -> Response:
    """One schedule, with its next five times and its last jobs."""
    service = call.unrestricted("schedules")
    return answer(_redacted(service, await service.app.get_schedule(name)))


@steering("PUT /schedules/{name}", "Add or change a schedule", ScheduleView, ScheduleRequest)
async def put(call: Call, name: Name) -> Response:
    """It fires from its next time on. The arguments are checked against the task."""
    service = call.unrestricted("schedules")
    asked = await read_json(call, ScheduleRequest)
    given = msgspec.structs.asdict(asked)
    try:
        view = await service.app.put_schedule(name, source="api", **given)
    except InvalidInput as error:
        hide = service.answers.redactor.refusal
        error.args = (hide(str(error), msgspec.json.encode(asked.params)),)
        raise
    await call.changed("schedule.put", name, expression=asked.expression)
    return answer(_redacted(service, view))


@steering("DELETE /schedules/{name}", "Remove a schedule", ScheduleRemoved, name="remove")
async def remove_schedule(call: Call, name: Name) -> Response:
    """Jobs that it has made stay. One that is declared in code comes back with the dispatcher."""
    await call.unrestricted("schedules").app.remove_schedule(name)
    await call.changed("schedule.remove", name)
    return answer(ScheduleRemoved(name))


@steering("POST /schedules/{name}/enable", "Enable a schedule", ScheduleView, EmptyRequest)
async def enable(call: Call, name: Name) -> Response:
    """It fires again, from its next time on."""
    return await _enable(call, name, enabled=True)


@steering("POST /schedules/{name}/disable", "Disable a schedule", ScheduleView, EmptyRequest)
async def disable(call: Call, name: Name) -> Response:
    """It does not fire. Times that pass meanwhile are skipped."""
    return await _enable(call, name, enabled=False)


async def _enable(call: Call, name: str, *, enabled: bool) -> Response:
    service = call.unrestricted("schedules")
    await read_optional_json(call, EmptyRequest)
    view = await service.app.enable_schedule(name, enabled)
    await call.changed("schedule.enable" if enabled else "schedule.disable", name)
    return answer(_redacted(service, view))


@steering(
    "POST /schedules/{name}/trigger",
    "Make a job of a schedule now",
    JobBody,
    TriggerRequest,
    status=202,
)
async def trigger(call: Call, name: Name) -> Response:
    """Beside its own times. 409 if it allows no overlap and a job of it is unfinished."""
    service = call.unrestricted("schedules")
    asked = await read_optional_json(call, TriggerRequest)
    job = await service.app.trigger_schedule(name, source="api", force=asked.force)
    await call.changed("schedule.trigger", name, job_id=job.id)
    return answer(service.answers.job(job), 202)


@reading("GET /schedules/{name}/next", "Its next times", ScheduleTimes)
async def next_times(
    call: Call, name: Name, count: Annotated[int, Query(ge=1, le=1_000)] = 5
) -> Response:
    """When it fires next, in its own time zone and in UTC."""
    return answer(await call.unrestricted("schedules").app.next_times(name, count))


def _redacted(service: Service, view: ScheduleView) -> ScheduleView:
    view.params = service.answers.redactor.value(view.params)
    return view
