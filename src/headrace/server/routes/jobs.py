"""Jobs: enqueue, list, and change many at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.responses import Response
from starlette.routing import BaseRoute

from headrace.api_types.job import BatchAnswer, JobBody
from headrace.api_types.requests import BatchRequest, BulkRequest, JobRequest
from headrace.api_types.responses import BulkAnswer
from headrace.errors import HeadraceError
from headrace.model.job import Job, JobFilter
from headrace.monitor.paging import fitting, weight
from headrace.server.build_job import make_job
from headrace.server.filters import Cursor, Limit, body_filter, job_cursor, job_filter
from headrace.server.http.body import media_type, read_json
from headrace.server.http.problems import Refused, refused
from headrace.server.http.uploads import enqueue_upload, with_header_key
from headrace.server.openapi.registry import accepts, page
from headrace.server.responses import answer, listed
from headrace.server.routing import Call, Router

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
        new = make_job(service, caller, with_header_key(call, wanted))
        job = await service.app.enqueue_job(new)
        created = job.id == new.id
    if created:
        service.audit.enqueued(caller, job.task, job.id)
    else:
        caller.check_queue(job.queue)
    place = f"{call.scope.get('root_path', '')}/jobs/{job.id}"
    return answer(service.answers.job(job), 202 if created else 200, {"Location": place})


@writing("POST /jobs/batch", "Enqueue up to 1,000 jobs", BatchAnswer, BatchRequest, status=202)
async def create_many(call: Call) -> Response:
    """All are checked before the first is stored, and stored together.

    `created` tells for each job whether it is new, or was there already by its key.
    """
    service, caller = call.service, call.caller
    batch = await read_json(call, BatchRequest, limit=service.batch_limit)
    new = []
    for index, wanted in enumerate(batch.jobs):
        try:
            new.append(make_job(service, caller, wanted))
        except Refused as refusal:
            raise refusal.within(f"jobs[{index}]") from None
        except HeadraceError as error:
            raise refused(error).within(f"jobs[{index}]") from None
    jobs = await service.app.enqueue_many(new)
    created = [job.id == asked.id for job, asked in zip(jobs, new, strict=True)]
    for job, is_new in zip(jobs, created, strict=True):
        if is_new:
            service.audit.enqueued(caller, job.task, job.id)
        else:
            caller.check_queue(job.queue)
    return answer(BatchAnswer(service.answers.jobs(jobs), created), 202)


@reading("GET /jobs", "List jobs, the newest first", page("jobs", JobBody))
async def find(
    call: Call,
    wanted: Annotated[JobFilter, Depends(job_filter)],
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """`status`, `queue`, `task` may be repeated. `cursor` of a page asks for the next one."""
    app = call.service.app
    await app.open()
    after = job_cursor(cursor)
    wanted = call.caller.narrowed(wanted)
    shown: list[JobBody] = []
    size = 0
    some: list[Job] = []
    # A page ends early where jobs are large: a thousand of them may not fit into memory.
    while len(shown) < limit and size < PAGE_BYTES:
        count = min(limit - len(shown), fitting(some, FIRST if not shown else PAGE))
        found = await app.engine.list_jobs(wanted, cursor=after, limit=count)
        some, after = found.jobs, found.cursor
        shown += call.service.answers.jobs(some)
        size += sum(map(weight, some))
        if after is None:
            break
    return listed("jobs", shown, after)


@writing("POST /jobs/bulk", "Cancel or retry all jobs that match", BulkAnswer, BulkRequest)
async def bulk(call: Call) -> Response:
    """Without a status, `cancel` takes unfinished jobs, and `retry` failed and timed-out ones."""
    service, caller = call.service, call.caller
    asked = await read_json(call, BulkRequest)
    done = await service.app.bulk(
        asked.action,
        caller.narrowed(body_filter(asked.filter)),
        dry_run=asked.dry_run,
        reason=asked.reason,
    )
    if done.changed:
        await call.changed(
            f"jobs.{asked.action}",
            f"{done.changed} jobs",
            filter=asked.filter,
            first_ids=done.ids,
        )
    return answer(done)
