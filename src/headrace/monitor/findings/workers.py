"""Workers that are lost, with what they held, and workers that say that they are not well."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from headrace.engine.base import Viewing
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.model.views import Finding, FindingTarget
from headrace.model.worker import Worker
from headrace.monitor.words import clock_time, plural, span

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "workers"
# One that holds nothing is told of for so long; others have taken over.
TOLD_FOR = timedelta(minutes=15)
# Of so many lost workers what they held is read, and so many jobs of each.
MOST_WORKERS = 20
MOST_JOBS = 100
LOOK = 2_000


class HeldJobs(msgspec.Struct, frozen=True):
    """Jobs that a lost worker still holds; not `complete` if there are more."""

    jobs: Sequence[Job] = ()
    complete: bool = True


async def held_jobs(
    engine: Viewing, workers: Sequence[Worker], queues: Collection[str]
) -> Mapping[str, HeldJobs]:
    """Return what lost workers held, by the id of the worker."""
    held = {}
    for worker in lost(workers)[:MOST_WORKERS]:
        filter = JobFilter(
            worker=worker.name, statuses=(Status.RUNNING,), queues=tuple(sorted(queues))
        )
        page = await engine.list_jobs(filter, limit=MOST_JOBS, brief=True, look=LOOK)
        held[worker.id] = HeldJobs(page.jobs, page.cursor is None)
    return held


def lost(workers: Sequence[Worker]) -> list[Worker]:
    """Return those that died, without those whose successor lives, the last to be seen first."""
    alive = {worker.name for worker in workers if worker.alive}
    dead = [worker for worker in workers if not worker.alive and worker.name not in alive]
    newest = {worker.name: worker for worker in sorted(dead, key=lambda each: each.heartbeat_at)}
    return sorted(newest.values(), key=lambda each: each.heartbeat_at, reverse=True)


def findings(facts: Facts) -> Iterator[Finding]:
    """Return what is wrong with workers."""
    for worker in lost(facts.workers):
        held = facts.held.get(worker.id, HeldJobs())
        if held.jobs or facts.now - worker.heartbeat_at < TOLD_FOR:
            yield _lost(facts, worker, held)
    for worker in facts.workers:
        if worker.alive and not worker.healthy:
            yield Finding(
                "error",
                SUBJECT,
                f"worker {worker.name!r} says that it is not well",
                f"Read its log; it runs as process {worker.pid} on {worker.host}.",
                kind="worker.unhealthy",
                name=worker.name,
                target=FindingTarget("workers", {"name": worker.name}),
            )


def _lost(facts: Facts, worker: Worker, held: HeldJobs) -> Finding:
    seen = clock_time(worker.heartbeat_at, facts.now)
    told = f"worker {worker.name!r} is lost, last seen at {seen}"
    if held.jobs:
        number = (
            plural(len(held.jobs), "job") if held.complete else f"{len(held.jobs)} jobs or more"
        )
        tasks = ", ".join(sorted({job.task for job in held.jobs})[:3])
        told += f"; it holds {number} ({tasks})"
        rest = "Another worker takes its jobs over."
    else:
        told += "; it holds nothing any more"
        shown = span(TOLD_FOR.total_seconds())
        rest = f"Nothing is to be done for its jobs; this is told for {shown}."
    return Finding(
        "error" if held.jobs else "warning",
        SUBJECT,
        told,
        f"Look at process {worker.pid} on {worker.host}, and start it again if it is gone. {rest}",
        kind="worker.lost",
        name=worker.name,
        since=worker.lease_until,
        target=FindingTarget("jobs", {"worker": worker.name}),
    )
