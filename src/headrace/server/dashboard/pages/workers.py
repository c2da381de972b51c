"""Workers: who is there, what each does, and what lost ones held. Also the example for others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.model.worker import Worker
from headrace.monitor.findings.facts import within
from headrace.monitor.findings.workers import lost
from headrace.monitor.snapshot import Snapshot
from headrace.server.dashboard.findings import links as finding_links
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit
from headrace.server.http.problems import Refused
from headrace.telemetry import TaskCounters, Telemetry

MOST = 200
MOST_JOBS = 50
MOST_ERRORS = 10
MOST_TASKS = 50
# At most so many jobs are looked at for those of one worker.
LOOK = 2_000


@page("/workers", title="Workers", key="w", query=("queue",))
async def workers(visit: Visit) -> Shown:
    """Alive ones first. A key for some queues sees those that serve them."""
    summary = await visit.service.summaries.get(visit.caller.queues)
    found: list[Worker] = summary.workers
    wanted = visit.query.get("queue") or None
    if wanted is not None:
        visit.caller.check_queue(wanted)
        found = [each for each in found if not each.queues or wanted in each.queues]
    findings = [each for each in summary.findings if each.kind.startswith("worker.")]
    return Shown(
        "queues/workers.html",
        workers=found[:MOST],
        more=max(0, len(found) - MOST),
        blocks=await _blocks(visit),
        held={each.id for each in lost(found)},
        versions=_versions(found),
        findings=finding_links.shown(visit, findings),
        queue=wanted,
    )


async def _found(visit: Visit) -> tuple[Snapshot, Worker | None]:
    snapshot = await visit.service.snapshots.get()
    seen = within(snapshot, visit.caller.queues).workers
    return snapshot, next((each for each in seen if each.id == visit.params["id"]), None)


@page("/workers/{id}", title="Worker")
async def worker(visit: Visit) -> Shown:
    """Show one: what it runs, what it has counted, and what failed on it."""
    snapshot, found = await _found(visit)
    if found is None:  # it may have come in the second since that was read
        visit.service.snapshots.forget()
        snapshot, found = await _found(visit)
    if found is None:
        detail = "there is no such worker; those that have gone are forgotten after a while"
        raise Refused(404, "not-found", detail, remedy="see all of them on the page Workers")
    seen = within(snapshot, visit.caller.queues).workers
    counted = snapshot.telemetry.get(found.name) if found.alive else None
    engine = visit.app.engine
    running = await engine.list_jobs(
        _of(visit, found, Status.RUNNING), limit=MOST_JOBS, brief=True, look=LOOK
    )
    failed = await engine.list_jobs(
        _of(visit, found, Status.FAILED, Status.TIMEOUT),
        limit=MOST_ERRORS, brief=True, look=LOOK,
    )  # fmt: skip
    restricted = bool(visit.caller.queues)
    return Shown(
        "queues/worker.html",
        title=f"Worker {found.name}",
        # Some of the tasks that it knows are of other queues.
        worker=msgspec.structs.replace(found, tasks=None) if restricted else found,
        restricted=restricted,
        replaced=not found.alive and found not in lost(seen),
        running=await visit.rows(running.jobs),
        more_running=running.cursor is not None,
        failed=await visit.rows(failed.jobs),
        counted=None if restricted else counted,
        tasks=_tasks(visit, counted),
    )


def _of(visit: Visit, worker: Worker, *statuses: Status) -> JobFilter:
    return visit.caller.narrowed(JobFilter(worker=worker.name, statuses=statuses))


def _tasks(visit: Visit, counted: Telemetry | None) -> list[TaskCounters]:
    """Return what it did by task and queue, the most first."""
    found: Iterable[TaskCounters] = counted.tasks.values() if counted else ()
    own = [each for each in found if visit.caller.may_touch(each.queue)]
    return sorted(own, key=lambda each: -each.attempts)[:MOST_TASKS]


async def _blocks(visit: Visit) -> dict[str, tuple[int, float]]:
    """Return how often, and for how long, handlers blocked the event loop of each worker."""
    telemetry = (await visit.service.snapshots.get()).telemetry
    return {
        name: (int(each.blocks), each.block_seconds)
        for name, each in telemetry.items()
        if each.blocks
    }


def _versions(found: Iterable[Worker]) -> list[tuple[str, int]]:
    """Return the versions of those that live if they differ, with how many have each."""
    counted = Counter(each.version for each in found if each.alive)
    return sorted(counted.items()) if len(counted) > 1 else []
