"""Now: how things are, in one sentence, and what to do where they are not well."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from headrace.model.job import JobFilter
from headrace.monitor.series.flow import RECENT, QueueFlow
from headrace.server.dashboard.charts.over_time import (
    OUTCOMES,
    outcome_chart,
    totals,
    trend,
    wait_chart,
)
from headrace.server.dashboard.findings.cards import cards, health
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.shared_reads import SharedReads
from headrace.server.dashboard.visit import Visit
from headrace.server.dashboard.words import moment_before
from headrace.server.routes.bulk import may_see

HOUR = timedelta(hours=1)
MOST_QUEUES = 20
MOST_ERRORS = 5


@page("/", title="Now", key="n")
async def now(visit: Visit) -> Shown:
    """Everything here is read once for all who look, and is at most seconds old."""
    service, allowed = visit.service, visit.caller.queues
    summaries = service.summaries
    shared = service.part(SharedReads)
    since = hour_ago(visit.now)
    # None of these needs another.
    summary, series, errors, flows, bulk = await asyncio.gather(
        summaries.at_opening(allowed) if visit.opens else summaries.get(allowed),
        service.series.read(queues=allowed),
        shared.errors(visit, visit.caller.narrowed(JobFilter(finished_after=since)), moving=True),
        service.series.flows(),
        shared.bulk(),
    )
    busiest = sorted(
        summary.queues, key=lambda each: (-(each.ready + each.waiting), -each.running, each.name)
    )[:MOST_QUEUES]
    queues = [
        (each, flows.get(each.name, QueueFlow()), moment_before(visit.now, each.oldest_age))
        for each in busiest
    ]
    made = cards(visit, summary.findings)
    alive = [each for each in summary.workers if each.alive]
    done = totals(series)
    waited = [each.wait for each in series.points if each.wait is not None]
    fresh = not (summary.queues or summary.workers or done)
    return Shown(
        "now.html",
        cards=made,
        health="Nothing has run here yet." if fresh and not made else health(made),
        fresh=fresh,
        running=sum(each.running for each in summary.queues),
        pending=sum(each.ready + each.waiting for each in summary.queues),
        scheduled=sum(each.scheduled for each in summary.queues),
        workers=len(alive),
        slots=sum(each.slots for each in alive),
        errors=errors,
        top_errors=[
            (each, trend(each, errors, since, visit.now)) for each in errors.groups[:MOST_ERRORS]
        ],
        series=series,
        totals=done,
        outcomes=OUTCOMES,
        throughput=outcome_chart("Attempts by minute in the last hour", series) if done else None,
        waits=wait_chart("Seconds that jobs waited, by minute", series) if waited else None,
        queues=queues,
        rate_minutes=RECENT,
        other_queues=len(summary.queues) - len(queues),
        bulk=[each for each in bulk if each.state == "running" and may_see(visit.caller, each)],
    )


def hour_ago(moment: datetime) -> datetime:
    """Return the minute an hour ago: it stays the same for a minute, so that looks are shared."""
    return (moment - HOUR).replace(second=0, microsecond=0)
