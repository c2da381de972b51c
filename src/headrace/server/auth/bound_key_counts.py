"""Numbers for keys for some queues: without runs that such a key does not see.

A run whose steps are in other queues is a job of its own queue, so the engines count it there. For
such a key it does not exist (decision 0035), so what it counts has to agree with what it can list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.model.job import Job, JobFilter
from headrace.model.limits.rate import RateView
from headrace.model.status import Status
from headrace.model.views import JobCount, QueueView
from headrace.monitor.search import COUNTED, STEP, brief_page
from headrace.monitor.search import count as count_all
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import Reach
from headrace.workflows.run import TASK as RUN

if TYPE_CHECKING:
    from headrace.server.service import Service

LIVE = (Status.SCHEDULED, Status.PENDING, Status.RUNNING)
PAGE = 200


async def own_count(
    service: Service, caller: Caller, wanted: JobFilter, mark: str | None
) -> JobCount:
    """Count the jobs that a caller sees, among the newest of those that it asks for."""
    engine, reach = service.app.engine, Reach(service, caller)
    runs = msgspec.structs.replace(wanted, tasks=(RUN,))
    asks_for_runs = not wanted.tasks or RUN in wanted.tasks
    if not (
        caller.queues and asks_for_runs and (await engine.count_jobs(runs, look=COUNTED)).count
    ):
        return await count_all(engine, wanted, mark, seen=reach.seen)
    counted, cursor = 0, None
    for _ in range(0, COUNTED, STEP):
        page = await brief_page(
            engine, wanted, mark, cursor=cursor, limit=STEP, look=STEP, seen=reach.seen
        )
        counted, cursor = counted + len(await reach.visible(page.jobs)), page.cursor
        if cursor is None:
            return JobCount(counted, True)
    return JobCount(counted, False)


async def own_depths(
    service: Service, queues: Collection[str], depths: Sequence[QueueView]
) -> list[QueueView]:
    """Return how deep queues are for a key for these: without runs that it does not see, of which
    the newest 10,000 unfinished ones are looked through.
    """
    own = [each for each in depths if not queues or each.name in queues]
    hidden = await _hidden_runs(service, queues) if queues and own else []
    if not hidden:
        return own
    held = await _held(service, hidden)
    counted = Counter((run.queue, _place(run, held)) for run in hidden)
    return [await _without(service, each, counted, hidden) for each in own]


async def own_rates(
    service: Service, caller: Caller, *, queue: str | None, lane: str | None, limit: int
) -> list[RateView]:
    """Return what a caller may see of rates and holds, by name, with how many jobs wait."""
    if queue is not None:
        caller.check_queue(queue)
    # One queue after the other: those of others must not take the room in the page.
    asked: list[str | None] = [queue] if queue is not None else [*sorted(caller.queues)] or [None]
    app = service.app
    found = [rate for each in asked for rate in await app.rates(queue=each, lane=lane, limit=limit)]
    found = sorted(found, key=lambda each: (each.queue, each.lane))[:limit]
    if not caller.queues or all(each.lane for each in found):
        return found
    depths = await own_depths(service, caller.queues, await app.engine.queues())
    waiting = {each.name: each.ready + each.waiting for each in depths}
    return [
        each if each.lane else msgspec.structs.replace(each, waiting=waiting.get(each.queue, 0))
        for each in found
    ]


async def _hidden_runs(service: Service, queues: Collection[str]) -> list[Job]:
    reach = Reach(service, Caller(name="", scope="read", queues=frozenset(queues)))
    wanted = JobFilter(tasks=(RUN,), statuses=LIVE, queues=tuple(sorted(queues)))
    hidden: list[Job] = []
    cursor: str | None = None
    for _ in range(0, COUNTED, PAGE):
        page = await service.app.engine.list_jobs(wanted, cursor=cursor, limit=PAGE)
        hidden += [job for job in page.jobs if not reach.sees(job)]
        cursor = page.cursor
        if cursor is None:
            break
    return hidden


async def _held(service: Service, runs: Sequence[Job]) -> set[str]:
    """Return the ids of those that have a place in their lane."""
    lanes = {(run.queue, run.lane) for run in runs if run.status is Status.PENDING and run.lane}
    return {
        holder
        for queue, lane in lanes
        for view in await service.app.lanes(queue=queue, lane=lane)
        for holder in view.holders
    }


def _place(run: Job, held: Collection[str]) -> str:
    if run.status is not Status.PENDING:
        return run.status.value
    return "ready" if run.lane is None or run.id in held else "waiting"


async def _without(
    service: Service, view: QueueView, counted: Counter[tuple[str, str]], hidden: Sequence[Job]
) -> QueueView:
    # They were read one after the other, so a run may be counted in one and not in the other.
    numbers = {
        name: max(0, getattr(view, name) - counted[view.name, name])
        for name in ("scheduled", "waiting", "ready", "running")
    }
    pending = [run for run in hidden if run.queue == view.name and run.status is Status.PENDING]
    age = await _oldest_age(service, view, pending) if pending else view.oldest_age
    # Who knows a run's task, and who does not, is as for any other.
    reserved = {task: count for task, count in view.reserved.items() if task != RUN}
    return msgspec.structs.replace(view, **numbers, oldest_age=age, reserved=reserved)


async def _oldest_age(service: Service, view: QueueView, hidden: Sequence[Job]) -> float | None:
    """Return the age of the oldest pending job that is seen, among the newest 1,000."""
    wanted = JobFilter(statuses=(Status.PENDING,), queues=(view.name,))
    page = await service.app.engine.list_jobs(wanted, limit=STEP, brief=True)
    left_out = {run.id for run in hidden}
    since = [job.run_at for job in page.jobs if job.id not in left_out]
    if page.cursor is not None and since:
        return view.oldest_age
    now = service.app.clock.utcnow()
    return max(0.0, (now - min(since)).total_seconds()) if since else None
