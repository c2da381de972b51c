"""One job: show, wait, cancel, retry, signal; its files, and changes as they happen."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import Header, Path, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.job import JobBody
from headrace.api_types.requests import TEXT, CancelRequest, CopyRequest, RetryRequest
from headrace.api_types.responses import Delivered, EntryView, JobResult, Reasons
from headrace.artifacts import LAYERS
from headrace.artifacts.index import file_of, files_of
from headrace.artifacts.names import NAME_LIMIT
from headrace.errors import (
    ArtifactNotFound,
    InvalidInput,
    InvalidName,
    JobFailed,
    ResultTimeout,
    SealedValue,
)
from headrace.model.artifact import Artifact
from headrace.model.durable.entries import STAGE, stage_view
from headrace.model.job import Job
from headrace.model.sealed import is_sealed
from headrace.monitor.changes.reconstruction import parse_fingerprint
from headrace.server.auth.reach import Reach, enqueue
from headrace.server.build_job import check_copy, make_copy
from headrace.server.filters import Names
from headrace.server.http.body import read_optional_json
from headrace.server.http.downloads import BYTES, Download
from headrace.server.http.problems import Refused
from headrace.server.http.sse import (
    CHECK_AGE,
    MEDIA_TYPE,
    EventStream,
    StillWelcome,
    check_room,
    gap,
)
from headrace.server.openapi.registry import JSON, page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

routes: list[BaseRoute] = []
reading, writing = Router("read", routes), Router("write", routes)

JobId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
LONGEST_POLL = 60.0


def _may_have_stages(job: Job) -> bool:
    """Return False before the first attempt, and after an only one that showed no stage."""
    return job.token > 1 or (job.token == 1 and (job.stage is not None or not job.status.final))


@reading("GET /jobs/{job_id}", "Show a job", JobBody)
async def show(call: Call, job_id: JobId) -> Response:
    """A job with its status, progress, attempts, finished stages, error and result."""
    if job_id in ("batch", "bulk"):
        raise HTTPException(405)  # these are other routes, with another method
    job = await call.job(job_id)
    body = call.service.answers.job(job)
    kept = await call.service.app.engine.entries(job.id, STAGE) if _may_have_stages(job) else []
    body.stages = [stage_view(entry) for entry in kept]
    return answer(body)


@reading("GET /jobs/{job_id}/result", "Wait for a job's result", JobResult, also={202: JobBody})
async def result(
    call: Call,
    job_id: JobId,
    timeout: Annotated[float, Query(ge=0, le=LONGEST_POLL, allow_inf_nan=False)] = 0.0,
) -> Response:
    """200 with the result; 202 with the job if it has not finished; 409 if it did not complete."""
    service = call.service
    job = await call.job(job_id)
    try:
        if not job.status.final:
            await service.long_poll(service.app.result(job.id, timeout))
            job = await call.job(job_id)
    except ResultTimeout:
        return answer(service.answers.job(await call.job(job_id)), 202)
    except (JobFailed, SealedValue):
        job = await call.job(job_id)
    body = service.answers.job(job)
    if not job.status.final:  # it was retried meanwhile
        return answer(body, 202)
    if job.result_json is None:
        raise Refused(
            409,
            "job-failed",
            f"job {job.id} ended as {job.status}: {body.error or 'no reason kept'}",
            remedy=f"POST /jobs/{job.id}/retry runs it again",
        )
    if is_sealed(bytes(body.result_json)):
        raise Refused(
            501,
            "missing-encryption-key",
            f'job {job.id}: its result is sealed with key "{job.sealed_with}", and this server '
            "does not open it",
            remedy="ask for it by an App that has the key, or let the server open it "
            "(HEADRACE_SHOW_SEALED)",
        )
    return answer(JobResult(body.result_json))


@reading("GET /jobs/{job_id}/why", "Why is it not running?", Reasons)
async def why(call: Call, job_id: JobId) -> Response:
    """The reasons in sentences, the most important first."""
    job = await call.job(job_id)
    hide = call.service.answers.redactor.text
    documents = (job.args_json, job.result_json, job.meta_json)
    reach = Reach(call.service, call.caller)
    reasons = await reach.own_words(job, await call.service.app.why(job.id))
    return answer(Reasons([hide(reason, *documents) for reason in reasons]))


@reading("GET /jobs/{job_id}/entries", "List the entries of a job", page("entries", EntryView))
async def entries(call: Call, job_id: JobId) -> Response:
    """Stages and other entries, in the order they were first written."""
    job = await call.job(job_id)
    kept = await call.service.app.engine.entries(job.id)
    return listed("entries", (call.service.answers.entry(job.id, each) for each in kept))


@writing("POST /jobs/{job_id}/cancel", "Cancel a job", JobBody, CancelRequest)
async def cancel(call: Call, job_id: JobId) -> Response:
    """At once, or as soon as its running handler has stopped. 409 if it is finished."""
    asked = await read_optional_json(call, CancelRequest)
    job = await call.own_job(job_id)
    job = await call.service.app.cancel(job.id, asked.reason)
    await call.changed("job.cancel", job.id, reason=asked.reason)
    return answer(call.service.answers.job(call.reach.shown(job)))


@writing("POST /jobs/{job_id}/retry", "Run a job again", JobBody, RetryRequest)
async def retry(call: Call, job_id: JobId) -> Response:
    """A finished one from its first unfinished stage, or from the one that is given; or a scheduled
    one now. Else 409.
    """
    asked = await read_optional_json(call, RetryRequest)
    job = await call.own_job(job_id)
    await call.reach.check_retry(job)
    try:
        job = await call.service.app.retry(job.id, from_stage=asked.from_stage)
    except InvalidInput as error:
        # The request is right; it is this job that has no such stage.
        raise Refused(409, "invalid-input", str(error), field="from") from None
    detail = {} if asked.from_stage is None else {"from": asked.from_stage}
    await call.changed("job.retry", job.id, **detail)
    return answer(call.service.answers.job(call.reach.shown(job)))


@writing("POST /jobs/{job_id}/copy", "Enqueue a copy of a job", JobBody, CopyRequest, status=202)
async def copy(call: Call, job_id: JobId) -> Response:
    """A new job with the same task, queue, priority and arguments, except for those that are given.

    Arguments with hidden values have to be given again: a copy could send them elsewhere. 409 if
    the arguments do not fit the task.
    """
    asked = await read_optional_json(call, CopyRequest)
    service, caller = call.service, call.caller
    job = await call.own_job(job_id)
    await check_copy(service, caller, asked)
    new = make_copy(service, caller, job, asked)
    made = await enqueue(service, caller, new)
    if made.id == new.id:
        await call.changed("job.copy", made.id, of=job.id)
    place = f"{call.scope.get('root_path', '')}/jobs/{made.id}"
    return answer(service.answers.job(made), 202, {"Location": place})


_ANY_JSON = {"requestBody": {"required": False, "content": {JSON: {"schema": {}}}}}


@writing(
    "POST /jobs/{job_id}/events/{event}",
    "Deliver an event to a job",
    Delivered,
    openapi_extra=_ANY_JSON,
)
async def signal(call: Call, job_id: JobId, event: Annotated[str, Path(pattern=TEXT)]) -> Response:
    """The body, any JSON, is what `ctx.wait` returns; without one it is null. The first event of a
    name counts: `delivery` is `delivered`, or `already` if there was one. 409 if it is finished.
    """
    value = await read_optional_json(call, object, empty=b"null")
    job = await call.own_job(job_id)
    await call.reach.check_named("the event", msgspec.json.encode(value))
    if await call.service.app.signal(job.id, event, value) != "delivered":
        return answer(Delivered(job.id, event, "already"))
    await call.changed("job.signal", job.id, event=event)
    return answer(Delivered(job.id, event, "delivered"))


# -- files -------------------------------------------------------------------------------------

Layer = Annotated[str, Path(json_schema_extra={"enum": list(LAYERS)})]
Name = Annotated[str, Path(max_length=NAME_LIMIT)]
DOWNLOAD = "/jobs/{job_id}/artifacts/{layer}/{name:path}"
FILE = {"type": "string", "format": "binary"}


@reading("GET /jobs/{job_id}/artifacts", "List a job's files", page("artifacts", Artifact))
async def find(call: Call, job_id: JobId) -> Response:
    """The files that a job has stored, and those that were sent with it."""
    files = await files_of(call.service.app.engine, await call.job(job_id))
    return listed("artifacts", files.values())


@reading(f"GET {DOWNLOAD}", "Download a file", FILE, also={206: FILE}, media_type=BYTES)
async def download(call: Call, job_id: JobId, layer: Layer, name: Name) -> Response:
    """The content of one file, or with `Range` a part of it. Its `ETag` is the SHA-256 checksum."""
    return await (await _asked(call, job_id, layer, name)).response()


@reading(f"HEAD {DOWNLOAD}", "Ask about a file", FILE, include_in_schema=False)
async def head(call: Call, job_id: JobId, layer: Layer, name: Name) -> Response:
    """What a download would say, without the content."""
    return await (await _asked(call, job_id, layer, name)).response()


async def _asked(call: Call, job_id: str, layer: str, name: str) -> Download:
    app = call.service.app
    job = await call.job(job_id)
    try:
        file: Artifact | None = await file_of(app.engine, job, layer, name)
        if file is not None:
            # Before the response begins: after that it could only break off.
            size = await app.artifact_store.size(file.path)
            return Download(call, app.artifact_store, file, size=size)
    except (InvalidName, ArtifactNotFound):
        pass
    raise Refused(
        404,
        "artifact-not-found",
        f"job {job.id} has no file {layer[:20]}/{name[:60]}, or it is not in the store any more",
        remedy=f"see /jobs/{job.id}/artifacts",
    )


# -- changes, as server-sent events ------------------------------------------------------------

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="Go on after this event.")
]
STREAM: dict[str, Any] = {"returns": {"type": "string"}, "media_type": MEDIA_TYPE}
GAP = -1


@reading("GET /jobs/{job_id}/events", "Follow one job", **STREAM)
async def follow(call: Call, job_id: JobId, last: LastEventId = None) -> Response:
    """The job as it is, then as it is after every change; ends with the change that finishes it."""
    check_room(call.service)
    job = await call.job(job_id)
    changes = call.service.changes
    subscriber = changes.follow(job, after=None if last is None else parse_fingerprint(last))
    return EventStream(
        call.service,
        subscriber,
        leave=lambda: changes.leave(subscriber, job.id),
        identify=lambda change: change.seen.text if change.seen else "",
        still_welcome=_still_welcome(call),
        data=call.reach.data,
    )


@reading("GET /events", "Follow all jobs", **STREAM)
async def follow_all(
    call: Call, task: Names = None, queue: Names = None, last: LastEventId = None
) -> Response:
    """Every change of every job from now on, or after `Last-Event-ID`.

    An event `gap` says that changes were missed, here or before: list the jobs.
    """
    check_room(call.service)
    tasks, queues = frozenset(task or ()), frozenset(queue or ()) or call.caller.queues
    for each in queues:
        call.caller.check_queue(each)

    def wanted(job: Job) -> bool:
        named = (not tasks or job.task in tasks) and (not queues or job.queue in queues)
        return named and reach.sees(job)

    changes, reach = call.service.changes, call.reach
    after = _number(changes.epoch, last)
    subscriber = await changes.follow_all(wanted, after=after) if after != GAP else None
    missed = subscriber is None
    if subscriber is None:
        subscriber = await changes.follow_all(wanted)
    assert subscriber is not None  # noqa: S101 - only with `after` there may be none
    followed = subscriber
    # From the first byte, so that one who loses the connection before the first change can go on.
    began = f"{changes.epoch}.{followed.began}".encode()
    return EventStream(
        call.service,
        followed,
        leave=lambda: changes.leave(followed),
        identify=lambda change: f"{changes.epoch}.{change.number}",
        still_welcome=_still_welcome(call),
        data=call.reach.data,
        opening=gap(began) if missed else b"id: %b\n\n" % began,
    )


def _number(epoch: str, last: str | None) -> int | None:
    """The number after which to go on; GAP if this process cannot know it."""
    if last is None:
        return None
    own, _, number = last.partition(".")
    return int(number) if own == epoch and number.isdecimal() and len(number) < 18 else GAP


def _still_welcome(call: Call) -> StillWelcome:
    """Whether the key that opened a stream is still valid."""
    keys, key_id = call.service.keys, call.caller.key_id

    async def still_welcome() -> bool:
        return key_id is None or await keys.valid(key_id, at_most=CHECK_AGE)

    return still_welcome
