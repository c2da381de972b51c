"""Jobs: enqueue, list, and change many at once."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from fastapi import Depends, Query
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.admin.bulk import apply, preview
from headrace.api_types.bulk import BulkAnswer, BulkView
from headrace.api_types.job import BatchAnswer, JobBody, JobRow, row_of
from headrace.api_types.requests import TEXT, BatchRequest, BulkRequest, JobRequest
from headrace.errors import HeadraceError
from headrace.model.job import Job, JobFilter, NewJob
from headrace.model.views import JobCount
from headrace.monitor.paging import fitting, weight
from headrace.monitor.search import find as find_jobs
from headrace.server.auth.bound_key_counts import own_count
from headrace.server.auth.reach import enqueue, enqueue_all
from headrace.server.build_job import check_request, make_job
from headrace.server.filters import Cursor, Limit, Mark, body_filter, job_cursor, job_filter
from headrace.server.http.body import media_type, read_json
from headrace.server.http.problems import Refused, refused
from headrace.server.http.uploads import enqueue_upload, with_header_key
from headrace.server.openapi.registry import accepts, described, page
from headrace.server.responses import answer, listed
from headrace.server.routes.bulk import start
from headrace.server.routing import Call, Router
from headrace.server.service import Service

routes: list[BaseRoute] = []
reading, writing = Router("read", routes), Router("write", routes)

PAGE = 500
FIRST = 50
PAGE_BYTES = 8 * 1_048_576
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same as `key` in the body: a second request with it makes no second job.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}


@writing(
    "POST /jobs",
    "Enqueue a job",
    JobBody,
    status=202,
    also={200: JobBody},
    **accepts(JobRequest, multipart="JobUpload", parameters=[IDEMPOTENCY_KEY]),
)
async def create(call: Call) -> Response:
    """Returns 202 with the job, or 200 with the one that has the same task and key already.

    As a form with files, each file becomes an artifact, and the argument of its name its path.
    """
    service, caller = call.service, call.caller
    if media_type(call.headers.get("content-type", "")) == "multipart/form-data":
        job, created = await enqueue_upload(service, caller, call)
    else:
        wanted = await read_json(call, JobRequest)
        await check_request(service, caller, wanted)
        new = make_job(service, caller, with_header_key(call, wanted))
        job = await enqueue(service, caller, new)
        created = job.id == new.id
    if created:
        service.audit.enqueued(caller, job.task, job.id)
    place = f"{call.scope.get('root_path', '')}/jobs/{job.id}"
    return answer(service.answers.job(job), 202 if created else 200, {"Location": place})


@writing("POST /jobs/batch", "Enqueue up to 1,000 jobs", BatchAnswer, BatchRequest, status=202)
async def create_many(call: Call) -> Response:
    """All are checked before the first is stored, and stored together.

    `created` tells for each job whether it is new, or was there already by its key.
    """
    service, caller = call.service, call.caller
    batch = await read_json(call, BatchRequest, limit=service.body_limits.batch)
    service.rate_limit.check_batch(caller.key_id, len(batch.jobs))
    new = []
    for index, wanted in enumerate(batch.jobs):
        try:
            await check_request(service, caller, wanted)
            new.append(_whole(make_job(service, caller, wanted)))
        except Refused as refusal:
            raise refusal.within(f"jobs[{index}]") from None
        except HeadraceError as error:
            raise refused(error).within(f"jobs[{index}]") from None
    jobs = await enqueue_all(service, caller, new)
    created = [job.id == asked.id for job, asked in zip(jobs, new, strict=True)]
    for job, is_new in zip(jobs, created, strict=True):
        if is_new:
            service.audit.enqueued(caller, job.task, job.id)
    return answer(BatchAnswer(service.answers.jobs(jobs), created), 202)


def _whole(job: NewJob) -> NewJob:
    """Refuse a job that cannot be stored together with others."""
    if job.policy is None:
        return job
    raise Refused(
        409,
        "job-conflict",
        "a batch is stored whole or not at all, but this job may be refused, or replace others: it "
        "has on_duplicate or a window, or its lane has when_full",
        remedy="send it by itself: POST /jobs",
    )


Fields = Annotated[
    Literal["row"] | None,
    Query(description="`row`: without arguments, result, meta and attempts."),
]
Search = Annotated[
    list[Annotated[str, Query(pattern=TEXT)]] | None,
    Query(
        max_length=10,
        description="A text in the arguments, meta, id, key or error; or `args.name=value`.",
    ),
]
Look = Annotated[
    int | None,
    Query(ge=1, le=100_000, description="Look at about so many jobs; a page may then be short."),
]
FOUND = page("jobs", JobBody)
FOUND["properties"]["jobs"]["items"] = {"anyOf": [described(JobBody), described(JobRow)]}
FOUND["properties"]["searched_to"] = {"type": ["string", "null"], "format": "date-time"}


@reading("GET /jobs", "List jobs, the newest first", FOUND)
async def find(  # noqa: PLR0917 - FastAPI gives them by name
    call: Call,
    wanted: Annotated[JobFilter, Depends(job_filter)],
    fingerprint: Mark = None,
    search: Search = None,
    fields: Fields = None,
    look: Look = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """`status`, `queue`, `task`, `error_type`, `search` may be repeated. `cursor` of a page asks
    for the next one.

    With `search` or `fingerprint` it looks for about a second: a page may be short, and
    `searched_to` is how far back it has looked.
    """
    service, brief = call.service, fields is not None
    await service.app.open()
    engine = service.app.engine
    after = job_cursor(cursor)
    wanted = call.caller.narrowed(wanted)
    if search or fingerprint is not None:
        found = await find_jobs(
            engine, wanted, search or (), fingerprint,
            cursor=after, limit=limit, brief=brief, seen=call.reach.seen,
        )  # fmt: skip
        shown = await _shown(service, await call.reach.visible(found.jobs), brief)
        return listed("jobs", shown, found.cursor, searched_to=found.searched_to)
    shown = []
    size = 0
    some: list[Job] = []
    # A page ends early where jobs are large: a thousand of them may not fit into memory.
    while len(shown) < limit and size < PAGE_BYTES:
        count = min(limit - len(shown), fitting(some, FIRST if not shown and not brief else PAGE))
        found = await engine.list_jobs(wanted, cursor=after, limit=count, brief=brief, look=look)
        some, after = found.jobs, found.cursor
        shown += await _shown(service, await call.reach.visible(some), brief)
        size += sum(map(weight, some))
        if after is None or look is not None:
            break
    return listed("jobs", shown, after, searched_to=None)


async def _shown(service: Service, jobs: list[Job], brief: bool) -> list[msgspec.Struct]:
    if not brief:
        return [*service.answers.jobs(jobs)]
    clean = await service.answers.clean(service.app.engine, jobs)
    return [row_of(JobBody.of(job)) for job in clean]


@reading("GET /jobs/count", "Count jobs", JobCount)
async def count(
    call: Call,
    wanted: Annotated[JobFilter, Depends(job_filter)],
    fingerprint: Mark = None,
) -> Response:
    """Among the newest 10,000 of the statuses asked for; not `complete` if there are others."""
    service = call.service
    await service.app.open()
    wanted = call.caller.narrowed(wanted)
    return answer(await own_count(service, call.caller, wanted, fingerprint))


@writing(
    "POST /jobs/bulk",
    "Cancel or retry all jobs that match",
    BulkAnswer,
    BulkRequest,
    also={202: BulkView},
)
async def bulk(call: Call) -> Response:
    """Without a status, `cancel` takes unfinished jobs, and `retry` failed and timed-out ones.

    202 with `background`: a server does it, and `GET /bulk/{bulk_id}` tells how far it is.
    """
    service, caller = call.service, call.caller
    caller.check_for_all("a bulk action")
    asked = await read_json(call, BulkRequest)
    wanted = caller.narrowed(body_filter(asked.filter))
    mark = None if asked.filter.fingerprint is msgspec.UNSET else asked.filter.fingerprint
    app, seen, runs = service.app, call.reach.seen, not caller.queues
    await app.open()
    if asked.dry_run:
        counted = await preview(
            app.engine, asked.action, wanted, mark, cutoff=asked.cutoff, seen=seen, runs=runs
        )
        samples = await call.reach.visible([each.to_job() for each in counted.samples])
        clean = await service.answers.clean(app.engine, samples)
        counted.samples = [JobBody.of(job) for job in clean]
        return answer(counted)
    if asked.background:
        return await start(call, asked, wanted, mark)
    done = await apply(
        app, asked.action, wanted, mark,
        cutoff=asked.cutoff, reason=asked.reason, seen=seen, runs=runs, queues=caller.queues,
    )  # fmt: skip
    if done.changed:
        await call.changed(
            f"jobs.{asked.action}",
            f"{done.changed} jobs",
            filter=asked.filter,
            first_ids=done.ids,
        )
    return answer(done)
