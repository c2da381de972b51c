"""One job: show, wait, cancel, retry."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.job import JobBody
from headrace.api_types.requests import CancelRequest, RetryRequest
from headrace.api_types.responses import EntryView, JobResult, Reasons
from headrace.errors import JobFailed, ResultTimeout
from headrace.model.durable.entries import STAGE, stage_view
from headrace.model.job import Job
from headrace.server.auth.guard import caller_of, router
from headrace.server.http.body import read_optional_json
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.service import service_of

reading, writing = router("read"), router("write")

JobId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
LONGEST_POLL = 60.0


async def the_job(request: Request, job_id: str) -> Job:
    """Return the job in the path, if this caller may see it."""
    return caller_of(request).check_job(await service_of(request).reader.get(job_id))


def _may_have_stages(job: Job) -> bool:
    """Return False before the first attempt, and after an only one that showed no stage."""
    return job.token > 1 or (job.token == 1 and (job.stage is not None or not job.status.final))


@reading.get("/jobs/{job_id}", summary="Show a job", **answers(JobBody))
async def show(request: Request, job_id: JobId) -> Response:
    """A job with its status, progress, attempts, finished stages, error and result."""
    service = service_of(request)
    job = await the_job(request, job_id)
    body = service.answers.job(job)
    kept = await service.app.engine.entries(job.id, STAGE) if _may_have_stages(job) else []
    body.stages = [stage_view(entry) for entry in kept]
    return answer(body)


@reading.get(
    "/jobs/{job_id}/result",
    summary="Wait for a job's result",
    **answers(JobResult, also={202: JobBody}),
)
async def result(
    request: Request,
    job_id: JobId,
    timeout: Annotated[float, Query(ge=0, le=LONGEST_POLL, allow_inf_nan=False)] = 0.0,
) -> Response:
    """200 with the result; 202 with the job if it has not finished; 409 if it did not complete."""
    service = service_of(request)
    job = await the_job(request, job_id)
    try:
        if not job.status.final:
            await service.long_poll(service.app.result(job.id, timeout))
            job = await the_job(request, job_id)
    except ResultTimeout:
        return answer(service.answers.job(await the_job(request, job_id)), 202)
    except JobFailed:
        job = await the_job(request, job_id)
    body = service.answers.job(job)
    if not job.status.final:  # it was retried meanwhile
        return answer(body, 202)
    if job.result_json is None:
        raise Refused(
            409,
            "job-failed",
            f"job {job.id} ended as {job.status}: {body.error_message or 'no reason kept'}",
            remedy=f"POST /jobs/{job.id}/retry runs it again",
        )
    return answer(JobResult(body.result))


@reading.get("/jobs/{job_id}/why", summary="Why is it not running?", **answers(Reasons))
async def why(request: Request, job_id: JobId) -> Response:
    """The reasons in sentences, the most important first."""
    job = await the_job(request, job_id)
    service = service_of(request)
    hide = service.answers.redactor.text
    documents = (job.args_json, job.result_json, job.meta_json)
    reasons = await service.app.why(job.id)
    return answer(Reasons([hide(reason, *documents) for reason in reasons]))


@reading.get(
    "/jobs/{job_id}/entries",
    summary="List the entries of a job",
    **answers(page("entries", EntryView)),
)
async def entries(request: Request, job_id: JobId) -> Response:
    """Stages and other entries, in the order they were first written."""
    service = service_of(request)
    job = await the_job(request, job_id)
    kept = await service.app.engine.entries(job.id)
    return listed("entries", [service.answers.entry(entry) for entry in kept])


@writing.post(
    "/jobs/{job_id}/cancel",
    summary="Cancel a job",
    **answers(JobBody),
    **accepts(CancelRequest, optional=True),
)
async def cancel(request: Request, job_id: JobId) -> Response:
    """At once, or as soon as its running handler has stopped. 409 if it is finished."""
    service, caller = service_of(request), caller_of(request)
    asked = await read_optional_json(request, CancelRequest)
    job = await the_job(request, job_id)
    job = await service.app.cancel(job.id, asked.reason)
    await service.audit.changed(caller, "job.cancel", job.id, reason=asked.reason)
    return answer(service.answers.job(job))


@writing.post(
    "/jobs/{job_id}/retry",
    summary="Run a job again",
    **answers(JobBody),
    **accepts(RetryRequest, optional=True),
)
async def retry(request: Request, job_id: JobId) -> Response:
    """A finished one from its first unfinished stage, or from the one that is given; or a scheduled
    one now. Else 409.
    """
    service, caller = service_of(request), caller_of(request)
    asked = await read_optional_json(request, RetryRequest)
    job = await the_job(request, job_id)
    job = await service.app.retry(job.id, from_stage=asked.from_stage)
    detail = {} if asked.from_stage is None else {"from": asked.from_stage}
    await service.audit.changed(caller, "job.retry", job.id, **detail)
    return answer(service.answers.job(job))
