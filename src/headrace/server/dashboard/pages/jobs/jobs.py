"""Jobs: a long list with filters."""

from __future__ import annotations

import asyncio

from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.model.views import JobCount, JobPage
from headrace.monitor.search import find
from headrace.server.dashboard.jobs.query import FILTERS, JobQuery
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.shared_reads import SharedReads
from headrace.server.dashboard.visit import Visit
from headrace.server.filters import job_cursor

ROWS = 100
# At most so many jobs are looked at for one page, however few of them match.
LOOK = 10_000
SEARCH_SECONDS = 0.5
MOST_TERMS = 10
MOST_SUGGESTED = 200
SUGGESTED_SECONDS = 30.0
TABS = (
    ("All", ()),
    ("Unfinished", ("scheduled", "pending", "running")),
    *((status.value.capitalize(), (status.value,)) for status in Status),
)


@page("/jobs", title="Jobs", key="j", query=(*FILTERS, "search", "cursor"))
async def jobs(visit: Visit) -> Shown:
    """Show jobs, the newest first, and how many there are."""
    query = JobQuery(visit)
    terms = [each for each in visit.query.getlist("search") if each.strip()][:MOST_TERMS]
    service, engine = visit.service, visit.app.engine
    await visit.app.open()
    cursor = job_cursor(visit.query.get("cursor"))
    count, counted = None, service.part(SharedReads).count
    first = cursor is None and not terms
    if terms or query.fingerprint is not None:
        found = await find(
            engine, query.wanted, terms, query.fingerprint, cursor=cursor, limit=ROWS, brief=True,
            seen=visit.reach.seen, seconds=SEARCH_SECONDS,
        )  # fmt: skip
    else:
        listing = engine.list_jobs(query.wanted, cursor=cursor, limit=ROWS, brief=True, look=LOOK)
        if first and query.wanted == JobFilter(statuses=query.wanted.statuses):
            # By status alone counting takes longer than listing, and neither waits for the other.
            found, count = await asyncio.gather(listing, counted(visit, query.wanted, None))
        else:
            found = await listing
    if first:
        count = _told(found) or count or await counted(visit, query.wanted, query.fingerprint)
    chosen = query.given.get("status", [])
    # Names of queues are suggested: they need not be of this moment.
    snapshot = await service.snapshots.get(SUGGESTED_SECONDS)
    queues = [each.name for each in snapshot.queues if visit.caller.may_touch(each.name)]
    return Shown(
        "jobs/jobs.html",
        jobs=await visit.rows(found.jobs),
        next=None if found.cursor is None else visit.again(cursor=found.cursor),
        searched_to=found.searched_to,
        count=count,
        query=query,
        terms=terms,
        chips=[*query.chips(), *_terms(visit, terms)],
        tabs=[
            (word, visit.again(status=statuses), sorted(statuses) == sorted(chosen))
            for word, statuses in TABS
        ],
        queues=queues[:MOST_SUGGESTED],
        tasks=visit.task_names()[:MOST_SUGGESTED],
        bulk=_bulk(chosen) if not terms else (),
    )


def _told(found: JobPage) -> JobCount | None:
    """Return how many there are, if the first page has shown all that were looked at."""
    # One of many rows may be missing only because its job moved on meanwhile.
    if found.cursor is not None and len(found.jobs) > ROWS // 2:
        return None
    return JobCount(len(found.jobs), found.cursor is None)


def _terms(visit: Visit, terms: list[str]) -> list[tuple[str, str, str]]:
    return [
        ("has", term, visit.again(search=[each for each in terms if each != term]))
        for term in terms
    ]


def _bulk(chosen: list[str]) -> tuple[str, ...]:
    """Return what can be done to all jobs in these statuses."""
    finished = [Status(each).final for each in chosen]
    if not finished:
        return ("retry", "cancel")
    return ("retry",) if all(finished) else ("cancel",) if not any(finished) else ()
