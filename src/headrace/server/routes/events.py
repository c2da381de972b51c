"""Changes of jobs as they happen, as server-sent events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header
from starlette.requests import Request
from starlette.responses import Response

from headrace.monitor.change_reconstruction import parse_fingerprint
from headrace.monitor.subscribers import Change
from headrace.server.auth.guard import Caller, caller_of, router
from headrace.server.filters import Names
from headrace.server.http.sse import MEDIA_TYPE, EventStream, StillWelcome, check_room
from headrace.server.openapi.registry import answers
from headrace.server.routes.job import JobId, the_job
from headrace.server.service import Service, service_of

reading = router("read")

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="Go on after this event.")
]
STREAM: dict[str, Any] = answers({"type": "string"}, media_type=MEDIA_TYPE)


@reading.get("/jobs/{job_id}/events", summary="Follow one job", **STREAM)
async def follow(request: Request, job_id: JobId, last: LastEventId = None) -> Response:
    """The job as it is, then as it is after every change; ends with the change that finishes it."""
    service = service_of(request)
    check_room(service)
    job = await the_job(request, job_id)
    changes = service.changes
    subscriber = changes.follow(job, after=None if last is None else parse_fingerprint(last))
    return EventStream(
        service,
        subscriber,
        leave=lambda: changes.leave(subscriber, job.id),
        identify=lambda change: change.seen.text,
        still_welcome=_still_welcome(service, caller_of(request)),
    )


@reading.get("/events", summary="Follow all jobs", **STREAM)
async def follow_all(
    request: Request, task: Names = None, queue: Names = None, last: LastEventId = None
) -> Response:
    """Every change of every job from now on, or after `Last-Event-ID`.

    An event `gap` says that changes were lost: list the jobs.
    """
    service, caller = service_of(request), caller_of(request)
    check_room(service)
    tasks, queues = frozenset(task or ()), frozenset(queue or ()) or caller.queues
    for each in queues:
        caller.check_queue(each)

    def wanted(change: Change) -> bool:
        return (not tasks or change.task in tasks) and (not queues or change.queue in queues)

    changes = service.changes
    after = _number(changes.epoch, last)
    subscriber = await changes.follow_all(wanted, after=after) if after != GAP else None
    gap = subscriber is None
    if subscriber is None:
        subscriber = await changes.follow_all(wanted)
    assert subscriber is not None  # noqa: S101 - only with `after` there may be none
    followed = subscriber
    return EventStream(
        service,
        followed,
        leave=lambda: changes.leave(followed),
        identify=lambda change: f"{changes.epoch}.{change.number}",
        still_welcome=_still_welcome(service, caller),
        gap=gap,
    )


GAP = -1


def _number(epoch: str, last: str | None) -> int | None:
    """The number after which to go on; GAP if this process cannot know it."""
    if last is None:
        return None
    own, _, number = last.partition(".")
    return int(number) if own == epoch and number.isdecimal() and len(number) < 18 else GAP


def _still_welcome(service: Service, caller: Caller) -> StillWelcome:
    """Whether the key that opened a stream is still valid."""

    async def still_welcome() -> bool:
        return caller.key_id is None or await service.keys.valid(caller.key_id)

    return still_welcome
