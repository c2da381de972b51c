"""Lanes that one job, or a few, have blocked for long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from headrace.engine.base import Viewing
from headrace.model.job import Job
from headrace.model.status import State
from headrace.model.views import Finding, FindingTarget, LaneView
from headrace.monitor.words import clock_time, plural, span

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "lanes"
# Somebody has waited for so long, and the holders have not changed for as long.
LONG_SECONDS = 300.0
MOST_LANES = 10
MOST_HOLDERS = 5


async def lane_holders(engine: Viewing, lanes: Sequence[LaneView]) -> Mapping[str, Job]:
    """Return the holders of lanes that may be blocked, by id."""
    ids = [holder for lane in _candidates(lanes) for holder in lane.holders]
    return {job.id: job for job in await engine.get(ids)} if ids else {}


def _candidates(lanes: Sequence[LaneView]) -> list[LaneView]:
    found = [
        lane
        for lane in lanes
        if lane.waiting
        and lane.used >= lane.width
        and (lane.oldest_age or 0.0) >= LONG_SECONDS
        # Where many hold a lane, no single one blocks it.
        and len(lane.holders) <= MOST_HOLDERS
    ]
    return found[:MOST_LANES]


def findings(facts: Facts) -> Iterator[Finding]:
    """Return the lanes that are blocked."""
    for lane in _candidates(facts.lanes):
        holders = [facts.holders[each] for each in lane.holders if each in facts.holders]
        if holders and all(held_long(job, facts.now) for job in holders):
            yield _blocked(facts, lane, holders)


def held_long(job: Job, now: datetime) -> bool:
    """Return whether a holder of a lane has had its place for long."""
    if job.state is State.SCHEDULED:
        # It keeps its place for a retry. One that waits for the rate of the lane blocks nobody:
        # those behind it could not start either.
        return not job.parked
    # One that no worker has taken is not what blocks the lane.
    since = job.started_at if job.state is State.RUNNING else None
    return since is not None and (now - since).total_seconds() >= LONG_SECONDS


def _blocked(facts: Facts, lane: LaneView, holders: list[Job]) -> Finding:
    first = holders[0]
    more = f" and {plural(len(holders) - 1, 'other')}" if len(holders) > 1 else ""
    return Finding(
        "warning",
        SUBJECT,
        f"lane {lane.lane!r} of queue {lane.queue!r} is held by job {first.id} of task "
        f"{first.task!r}, {_doing(facts, first)}{more}; {plural(lane.waiting, 'job')} "
        f"{'waits' if lane.waiting == 1 else 'wait'} for it",
        f"Look at it: headrace jobs show {first.id}; to let the others pass: "
        f"headrace jobs cancel {first.id}",
        kind="lane.blocked",
        name=f"{lane.queue}/{lane.lane}",
        since=first.started_at or facts.before(lane.oldest_age),
        action="cancel",
        target=FindingTarget("job", {"id": first.id}),
    )


def _doing(facts: Facts, job: Job) -> str:
    if job.state is State.RUNNING and job.started_at is not None:
        return f"which has been running for {span((facts.now - job.started_at).total_seconds())}"
    return f"which waits until {clock_time(job.run_at, facts.now)}"
