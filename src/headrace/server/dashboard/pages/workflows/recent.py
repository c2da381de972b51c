"""Runs of workflows, the newest first. A list of jobs does not say which workflow each is of."""

from __future__ import annotations

import time

import msgspec

from headrace.engine.bounded_reads import parts
from headrace.model.job import Job, JobFilter
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import Reach
from headrace.server.service import Service
from headrace.workflows.run import TASK

STEP = 100
# Jobs that are looked at for one page, and seconds: what is further back has to be asked for.
LOOK = 10_000
SECONDS = 0.3
MOST_KNOWN = 20_000


class FoundRun(msgspec.Struct, frozen=True):
    """A run, without its arguments."""

    job: Job
    workflow_id: str
    version: str

    @property
    def status(self) -> str:
        """Return its status; while it waits for its steps, it runs."""
        return "running" if self.job.awaits else self.job.status.value


class FoundRuns(msgspec.Struct, frozen=True):
    """Some runs; `cursor` is where to look further back."""

    runs: list[FoundRun]
    cursor: str | None


class RecentRuns:
    """Finds runs. Which workflow a run is of never changes, so it is read once."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._app = service.app
        self._known: dict[str, tuple[str, str]] = {}

    async def page(
        self, caller: Caller, workflow_id: str | None = None, *, cursor: str | None, limit: int
    ) -> FoundRuns:
        """Return runs of one workflow or of all that this caller may see. The work is bounded: a
        page may be short although its cursor leads to more.
        """
        await self._app.open()
        wanted = caller.narrowed(JobFilter(tasks=(TASK,)))
        reach = Reach(self._service, caller)
        found: list[FoundRun] = []
        ends = time.monotonic() + SECONDS
        while True:
            page = await self._app.engine.list_jobs(
                wanted, cursor=cursor, limit=STEP, brief=True, look=LOOK
            )
            await self._read([job.id for job in page.jobs if job.id not in self._known])
            for job in await reach.visible(page.jobs):
                name, version = self._known.get(job.id, ("", ""))
                if name and workflow_id in (None, name):
                    found.append(FoundRun(job, name, version))
                    if len(found) == limit:
                        more = page.cursor is not None or job is not page.jobs[-1]
                        return FoundRuns(found, job.id if more else None)
            cursor = page.cursor
            # An empty page has cost its whole look.
            if cursor is None or not page.jobs or time.monotonic() >= ends:
                return FoundRuns(found, cursor)

    async def _read(self, ids: list[str]) -> None:
        async for some in parts(self._app.engine, ids):
            for job in some:
                meta = job.meta
                about = str(meta.get("workflow_id", "")), str(meta.get("workflow_version", ""))
                self._known[job.id] = about
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
