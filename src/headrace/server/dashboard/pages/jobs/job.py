"""One job: why it is where it is, what has happened to it, and all that it has."""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.artifacts.index import file_of
from headrace.errors import ArtifactNotFound, InvalidInput, InvalidName, JobNotFound
from headrace.model.durable.awaited import AwaitedEvent
from headrace.model.job import Job, JobFilter
from headrace.model.sealed import SEALED_ERROR
from headrace.model.status import State
from headrace.monitor.timeline import TimelineItem, timeline
from headrace.monitor.why import why
from headrace.server.auth.reach import Reach
from headrace.server.dashboard.charts import GanttRow, gantt
from headrace.server.dashboard.jobs.details import JobDetails, JobDetailsCache
from headrace.server.dashboard.page import Shown, download, page
from headrace.server.dashboard.visit import Visit
from headrace.server.http.downloads import Download, disposition
from headrace.server.http.problems import Refused

MOST_CHILDREN = 20
COUNTED_CHILDREN = 1_000
MOST_HOLDERS = 5
# Of a longer timeline its beginning and its end are shown.
MOST_ITEMS = 60
MOST_BARS = 40
LONGEST_ERROR = 300
# How often a bar that grows is drawn anew: after about so many parts of its length.
PARTS = 32
JSON = "application/json"
PARTS_OF_JOB = {"args": "args_json", "result": "result_json", "meta": "meta_json"}
BARS = {
    "attempt": "running", "stage": "completed", "due": "scheduled", "wait": "scheduled",
    "lane": "pending", "worker": "pending", "sleep": "scheduled",
}  # fmt: skip


@page("/jobs/{job_id}", title="Job")
async def job(visit: Visit) -> Shown:
    """Show a job, if there is one."""
    cache = visit.service.part(JobDetailsCache)
    try:
        found = await cache.brief(visit, visit.params["job_id"])
        details = await cache.get(found)
    except (JobNotFound, InvalidInput) as error:
        return Shown("jobs/no_job.html", title="No such job", status=404, reason=str(error))
    if found.error == SEALED_ERROR:
        found.error = details.error  # open, if this server opens it
    found.error = found.error and details.text(found.error)
    found.message = found.message and details.text(found.message)
    engine, now = visit.app.engine, visit.now
    reach = Reach(visit.service, visit.caller)
    reasons = await reach.own_words(found, await why(engine, found, now.timestamp()))
    reasons = [details.text(each) for each in reasons]
    if found.status.final:
        del reasons[1:]  # how to run it again is said by the button
    whole = msgspec.structs.replace(found, log=details.log)
    items = [_clean(each, details) for each in timeline(whole, details.slim, now)]
    full = visit.may("admin") and not visit.caller.queues
    return Shown(
        "jobs/job.html",
        title=found.task,
        job=found,
        details=details,
        reasons=reasons,
        items=_bounded(items),
        gantt=_gantt(items, now),
        holders=await _holders(visit, found),
        events=[
            (each.name, shlex.quote(each.name))
            for each in found.awaits
            if isinstance(each, AwaitedEvent)
        ],
        **await _family(visit, found, details),
        audit=await cache.audit(found, details) if full else None,
    )


async def _holders(visit: Visit, found: Job) -> Sequence[Job]:
    """Return who has the places in the lane that a job waits for."""
    if found.state is not State.WAITING or found.lane is None:
        return []
    lanes = await visit.app.engine.lanes(queue=found.queue, lane=found.lane)
    ids = [each for lane in lanes for each in lane.holders][:MOST_HOLDERS]
    cache = visit.service.part(JobDetailsCache)
    return [each for each in [await cache.brief_or_none(visit, one) for one in ids] if each]


async def _family(visit: Visit, found: Job, details: JobDetails) -> dict[str, Any]:
    """Return the jobs that this one was made by, those that it made, and what it is a copy of."""
    engine, cache = visit.app.engine, visit.service.part(JobDetailsCache)
    wanted = visit.caller.narrowed(JobFilter(parent=found.id))
    page = await engine.list_jobs(wanted, limit=MOST_CHILDREN, brief=True, look=COUNTED_CHILDREN)
    count = None
    if page.cursor is not None:
        count = await engine.count_jobs(wanted, look=COUNTED_CHILDREN)
    return {
        "parent": await cache.brief_or_none(visit, found.parent),
        "copy_of": await cache.brief_or_none(visit, details.copy_of),
        "children": await visit.rows(page.jobs),
        "children_count": count,
    }


def _clean(item: TimelineItem, details: JobDetails) -> TimelineItem:
    words, error = details.text(item.words), item.error
    if error is not None:
        error = details.text(error)
    if len(words) > LONGEST_ERROR or len(error or "") > LONGEST_ERROR:
        words, error = words[:LONGEST_ERROR], error and error[:LONGEST_ERROR]
    return msgspec.structs.replace(item, words=words, error=error)


def _bounded(items: list[TimelineItem]) -> list[TimelineItem]:
    if len(items) <= MOST_ITEMS:
        return items
    half = MOST_ITEMS // 2
    words = f"… {len(items) - 2 * half:,} more"
    left_out = TimelineItem(kind="omitted", at=items[half].at, words=words)
    return [*items[:half], left_out, *items[-half:]]


def _gantt(items: list[TimelineItem], now: datetime) -> object | None:
    """Return spans as bars; None if there are none. What goes on ends at a round time, so that
    the picture does not change at each look.
    """
    spans = [each for each in items if each.until is not None or each.goes_on]
    if not spans:
        return None
    if len(spans) > MOST_BARS:
        spans = [*spans[: MOST_BARS // 2], *spans[-MOST_BARS // 2 :]]
    first = spans[0].at
    length = max((now - first).total_seconds(), 1.0)
    step = 2.0 ** max(math.ceil(math.log2(length / PARTS)), 0)
    end = first + timedelta(seconds=math.ceil(length / step) * step)
    rows = []
    for each in spans:
        until = end if each.goes_on or each.until is None else each.until
        kind = BARS.get(each.kind, "running")
        if each.kind == "attempt" and not each.goes_on:
            kind = "failed" if each.error else "completed"
        rows.append(GanttRow(each.words, kind, each.at, max(until, each.at), each.words))
    return gantt("What took how long", rows)


# -- downloads -------------------------------------------------------------------------------------


@download("/jobs/{job_id}/attempts.json")
async def send_attempts(visit: Visit, _: Request) -> Response:
    """Send every attempt that is kept."""
    found = await visit.job(visit.params["job_id"])
    body = await asyncio.to_thread(visit.service.answers.job, found)
    encoded = await asyncio.to_thread(msgspec.json.encode, body.log)
    return _attachment(encoded, f"{found.task}-{found.id[-12:]}-attempts.json")


@download("/jobs/{job_id}/entries.json")
async def send_entries(visit: Visit, _: Request) -> Response:
    """Send every entry: stages with their values, sleeps, events."""
    found = await visit.job(visit.params["job_id"])
    kept = await visit.app.engine.entries(found.id)
    seen = [visit.service.answers.entry(found.id, each) for each in kept]
    return _attachment(msgspec.json.encode(seen), f"{found.task}-{found.id[-12:]}-entries.json")


@download("/jobs/{job_id}/{part}.json")
async def send_part(visit: Visit, _: Request) -> Response:
    """Send the whole arguments, result or meta, without what is hidden."""
    name = PARTS_OF_JOB.get(visit.params["part"])
    found = visit.service.answers.opened(await visit.job(visit.params["job_id"]))
    encoded: bytes | None = None if name is None else getattr(found, name)
    if encoded is None:
        raise Refused(404, "not-found", f"job {found.id} has no {visit.params['part'][:20]}")
    # Of ten megabytes this takes a while.
    clean = await asyncio.to_thread(visit.redactor.json, encoded)
    return _attachment(clean, f"{found.task}-{found.id[-12:]}-{visit.params['part']}.json")


def _attachment(encoded: bytes, name: str) -> Response:
    headers = {
        "Content-Disposition": disposition(name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "no-store",
    }
    return Response(encoded, headers=headers, media_type=JSON)


@download("/jobs/{job_id}/files/{layer}/{name:path}")
async def send_file(visit: Visit, request: Request) -> Response:
    """Send a file of a job."""
    found = await visit.job(visit.params["job_id"])
    layer, name = visit.params["layer"], visit.params["name"]
    store = visit.app.artifact_store
    try:
        file = await file_of(visit.app.engine, found, layer, name)
        if file is not None:
            size = await store.size(file.path)
            return await Download(request, store, file, size=size).response()
    except (InvalidName, ArtifactNotFound):
        pass
    raise Refused(
        404,
        "artifact-not-found",
        f"job {found.id} has no file {layer[:20]}/{name[:60]}, or it is not in the store any more",
    )
