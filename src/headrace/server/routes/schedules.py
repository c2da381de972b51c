"""Schedules: when tasks run by the clock."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.job import JobBody
from headrace.api_types.requests import (
    NAME,
    EmptyRequest,
    ScheduleRequest,
    TriggerRequest,
)
from headrace.api_types.responses import ScheduleRemoved, ScheduleTimes, ScheduleView
from headrace.server.auth.guard import caller_of, router
from headrace.server.http.body import read_json, read_optional_json
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import Service, service_of

reading, steering = router("read"), router("admin")

Name = Annotated[str, Path(pattern=NAME)]
RUNS = 10


@reading.get("/schedules", summary="List schedules", **answers(page("schedules", ScheduleView)))
async def find(request: Request) -> Response:
    """Every schedule in words, with its next times and its last jobs."""
    service = _service(request)
    app = service.app
    schedules = app.schedules
    from headrace.dispatchers.cron.views import views  # noqa: PLC0415 - an extra

    found = await views(schedules, app.clock.utcnow())
    return listed("schedules", [_shown(service, each) for each in found])


@reading.get("/schedules/{name}", summary="Show a schedule", **answers(ScheduleView))
async def show(request: Request, name: Name) -> Response:
    """One schedule, with its next five times and its last runs."""
    service = _service(request)
    return answer(await _view(service, name))


@steering.put(
    "/schedules/{name}",
    summary="Add or change a schedule",
    **answers(ScheduleView),
    **accepts(ScheduleRequest),
)
async def put(request: Request, name: Name) -> Response:
    """It fires from its next time on. The arguments are checked against the task."""
    service, caller = _service(request), caller_of(request)
    asked = await read_json(request, ScheduleRequest)
    schedules = service.app.schedules
    from headrace.model.schedule import Schedule  # noqa: PLC0415 - an extra

    schedule = Schedule(
        name=name,
        expression=asked.expression,
        task=asked.task,
        tz=asked.tz,
        params=asked.params,
        allow_overlap=asked.allow_overlap,
        enabled=asked.enabled,
        missed=asked.missed,
    )
    await schedules.add(schedule, origin="api", replace=True)
    await service.audit.changed(caller, "schedule.put", name, expression=asked.expression)
    return answer(await _view(service, name))


@steering.delete("/schedules/{name}", summary="Forget a schedule", **answers(ScheduleRemoved))
async def remove(request: Request, name: Name) -> Response:
    """Jobs that it has made stay. One that is declared in code comes back with the dispatcher."""
    service, caller = _service(request), caller_of(request)
    await service.app.schedules.remove(name)
    await service.audit.changed(caller, "schedule.remove", name)
    return answer(ScheduleRemoved(name))


@steering.post(
    "/schedules/{name}/enable",
    summary="Enable a schedule",
    **answers(ScheduleView),
    **accepts(EmptyRequest, optional=True),
)
async def enable(request: Request, name: Name) -> Response:
    """It fires again, from its next time on."""
    return await _enable(request, name, enabled=True)


@steering.post(
    "/schedules/{name}/disable",
    summary="Disable a schedule",
    **answers(ScheduleView),
    **accepts(EmptyRequest, optional=True),
)
async def disable(request: Request, name: Name) -> Response:
    """It is quiet. Times that pass meanwhile are not made up for."""
    return await _enable(request, name, enabled=False)


@steering.post(
    "/schedules/{name}/trigger",
    summary="Make a job of a schedule now",
    **answers(JobBody, 202),
    **accepts(TriggerRequest, optional=True),
)
async def trigger(request: Request, name: Name) -> Response:
    """Beside its own times. 409 if it allows no overlap and a job of it is unfinished."""
    service, caller = _service(request), caller_of(request)
    asked = await read_optional_json(request, TriggerRequest)
    job = await service.app.schedules.trigger(name, source="api", force=asked.force)
    await service.audit.changed(caller, "schedule.trigger", name, job_id=job.id)
    return answer(service.answers.job(job), 202)


@reading.get("/schedules/{name}/next", summary="Its next times", **answers(ScheduleTimes))
async def next_times(
    request: Request, name: Name, count: Annotated[int, Query(ge=1, le=1_000)] = 5
) -> Response:
    """When it fires next, in its own time zone and in UTC."""
    app = _service(request).app
    schedule = (await app.schedules.get(name)).schedule
    from headrace.dispatchers.cron.views import next_times as times_after  # noqa: PLC0415 - an extra

    return answer(
        {
            "expression": schedule.expression,
            "words": schedule.cron.words,
            "tz": schedule.tz,
            "next": times_after(schedule, app.clock.utcnow(), count),
        }
    )


def _service(request: Request) -> Service:
    caller_of(request).check_unrestricted("schedules")
    return service_of(request)


async def _enable(request: Request, name: str, *, enabled: bool) -> Response:
    service, caller = _service(request), caller_of(request)
    await read_optional_json(request, EmptyRequest)
    await service.app.schedules.enable(name, enabled)
    action = "schedule.enable" if enabled else "schedule.disable"
    await service.audit.changed(caller, action, name)
    return answer(await _view(service, name))


async def _view(service: Service, name: str) -> dict[str, Any]:
    app = service.app
    schedules = app.schedules
    from headrace.dispatchers.cron.views import view  # noqa: PLC0415 - an extra

    return _shown(service, await view(schedules, name, app.clock.utcnow(), runs=RUNS))


def _shown(service: Service, view: dict[str, Any]) -> dict[str, Any]:
    return view | {"params": service.answers.redactor.value(view["params"])}
