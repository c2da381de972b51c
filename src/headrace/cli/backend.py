"""What commands that look and steer ask for: of an engine, or of a server over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from headrace import job_tree
from headrace.app import App
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.views import Delivery, JobPage, LaneView, QueueView
from headrace.model.worker import Worker
from headrace.monitor.running import RUNNING, RunningJobs
from headrace.monitor.worker_metrics import KIND, decode

Action = Literal["cancel", "retry"]
Advance = Callable[[int], None]

PAGE = 500


class Verbs(Protocol):
    """Jobs, wherever they are."""

    def now(self) -> datetime:
        """The time that ages are counted from."""

    async def get(self, job_id: str) -> Job:
        """One job."""

    async def list(
        self, filter: JobFilter, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage:
        """A page of jobs, newest first."""

    async def result(self, job_id: str, timeout: float | None) -> Any:
        """Wait for a job and answer what its handler returned."""

    async def why(self, job_id: str) -> Sequence[str]:
        """Why is it not running? In sentences."""

    async def entries(self, job_id: str) -> Sequence[StoredEntry]:
        """What is kept with a job."""

    async def cancel(self, job_id: str, reason: str) -> Job:
        """Cancel a job."""

    async def retry(self, job_id: str, *, from_stage: str | None = None) -> Job:
        """Run a finished job again, from a stage on if one is given; or a scheduled one now."""

    async def signal(self, job_id: str, event: str, value: Any = None) -> Delivery:
        """Deliver an event to a job."""

    async def count(self, action: Action, wanted: JobFilter) -> int:
        """How many jobs a bulk change would reach."""

    async def change(
        self, action: Action, wanted: JobFilter, reason: str | None, advance: Advance
    ) -> int:
        """Cancel or retry all that match, and answer how many were changed."""

    async def queues(self) -> Sequence[QueueView]:
        """Every queue."""

    async def pause(self, queue: str) -> None:
        """Stop handing out a queue's jobs."""

    async def resume(self, queue: str) -> None:
        """Hand them out again."""

    async def lanes(self, *, queue: str | None, lane: str | None, limit: int) -> Sequence[LaneView]:
        """Lanes with holders or waiting jobs."""

    async def workers(self) -> Sequence[Worker]:
        """Workers, alive ones first."""

    async def outcomes(self) -> Mapping[str, Mapping[str, int]]:
        """How many attempts ended how, by worker, as far as those have told."""


class Direct:
    """The verbs on an engine."""

    def __init__(self, app: App) -> None:
        engine = app.engine
        self._app = app
        self.get = app.get
        self.list = app.list
        self.result = app.result
        self.why = app.why
        self.cancel = app.cancel
        self.retry = app.retry
        self.signal = app.signal
        self.entries = engine.entries
        self.queues = engine.queues
        self.lanes = engine.lanes
        self.workers = engine.workers

    def now(self) -> datetime:
        return self._app.clock.utcnow()

    async def pause(self, queue: str) -> None:
        await self._app.engine.pause(queue, True)

    async def resume(self, queue: str) -> None:
        await self._app.engine.pause(queue, False)

    async def count(self, action: Action, wanted: JobFilter) -> int:
        return sum([len(page.jobs) async for page in pages(self, wanted)])

    async def change(
        self, action: Action, wanted: JobFilter, reason: str | None, advance: Advance
    ) -> int:
        """Page by page, so that a million jobs need no more memory than a page."""
        seen = changed = 0
        async for page in pages(self, wanted):
            batch = [job.id for job in page.jobs]
            match action:
                case "cancel":
                    changed += len(
                        await job_tree.cancel(self._app.engine, batch, reason or "cancelled")
                    )
                case "retry":
                    changed += len(await self._app.rerun(page.jobs))
            seen += len(batch)
            advance(seen)
        return changed

    async def outcomes(self) -> Mapping[str, Mapping[str, int]]:
        told = decode(await self._app.engine.record_list(KIND))
        return {worker: counted.outcomes() for worker, counted in told.items()}


async def pages(verbs: Verbs, wanted: JobFilter) -> AsyncIterator[JobPage]:
    """All jobs that match, page by page, newest first."""
    cursor = None
    while True:
        page = await verbs.list(wanted, cursor=cursor, limit=PAGE)
        if page.jobs:
            yield page
        cursor = page.cursor
        if cursor is None:
            return


async def running_now(verbs: Verbs, queues: Sequence[QueueView]) -> RunningJobs:
    """What runs now, and what waits in these queues."""
    jobs = [job async for page in pages(verbs, RUNNING) for job in page.jobs]
    return RunningJobs.of(jobs, queues, verbs.now().timestamp())
