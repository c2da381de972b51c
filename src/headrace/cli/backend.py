"""Where commands find jobs: an App on its engine, or a Client of a server, with the same verbs."""

from __future__ import annotations

import getpass
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace.app import App
from headrace.encryption.views import shown_entry, shown_job
from headrace.model.artifact import Artifact
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.views import JobPage, QueueView
from headrace.monitor.running import RUNNING, RunningJobs

if TYPE_CHECKING:
    from headrace.api_types.responses import ScheduleView
    from headrace.client import Client
    from headrace.workflows.model import Workflow

    Backend: TypeAlias = App | Client

PAGE = 500
ShownJob: TypeAlias = tuple[Job, Sequence[StoredEntry]]
_ATTEMPTS = re.compile(r"headrace_attempts_total\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def time_now(backend: Backend) -> datetime:
    """Return the time that ages are counted from."""
    return backend.clock.utcnow() if isinstance(backend, App) else datetime.now(UTC)


def from_cli(backend: Backend) -> dict[str, Any]:
    """Return what marks a change as made here; a server marks it as its own."""
    return {"source": "cli"} if isinstance(backend, App) else {}


def by_cli(backend: Backend) -> dict[str, Any]:
    """Return who makes a change here; a server knows that by the key."""
    if not isinstance(backend, App):
        return {}
    try:
        return {"by": getpass.getuser()}
    except (OSError, KeyError):  # a container whose user has no name
        return {}


async def list_schedules(backend: Backend) -> Sequence[ScheduleView]:
    """Return every schedule."""
    return await (backend.list_schedules() if isinstance(backend, App) else backend.schedules())


async def get_schedule(backend: Backend, name: str) -> ScheduleView:
    """Return one schedule."""
    return await (
        backend.get_schedule(name) if isinstance(backend, App) else backend.schedule(name)
    )


async def list_workflows(backend: Backend) -> Sequence[Workflow]:
    """Return the newest version of each workflow."""
    return await (backend.list_workflows() if isinstance(backend, App) else backend.workflows())


async def get_workflow(backend: Backend, workflow_id: str, version: str | None) -> Workflow:
    """Return one workflow."""
    return await (
        backend.get_workflow(workflow_id, version)
        if isinstance(backend, App)
        else backend.workflow(workflow_id, version)
    )


async def list_artifacts(backend: Backend, job_id: str) -> Sequence[Artifact]:
    """Return the files of a job."""
    return await (
        backend.list_artifacts(job_id) if isinstance(backend, App) else backend.artifacts(job_id)
    )


async def outcomes(backend: Backend) -> Mapping[str, Mapping[str, int]]:
    """Return how many attempts ended how, by worker, as far as workers have published it. A server
    tells of all workers together.
    """
    if isinstance(backend, App):
        from headrace.monitor.counters.worker_metrics import KIND, decode  # noqa: PLC0415 - only `top` needs it

        published = decode(await backend.engine.record_list(KIND))
        return {worker: counted.outcomes() for worker, counted in published.items()}
    found: dict[str, dict[str, int]] = defaultdict(Counter)
    for line in (await backend.metrics()).splitlines():
        if sample := _ATTEMPTS.match(line):
            labels = dict(_LABEL.findall(sample[1]))
            found[labels.get("worker", "")][labels["outcome"]] += int(float(sample[2]))
    return found


def shown(backend: Backend, job: Job, entries: Sequence[StoredEntry]) -> ShownJob:
    """Return a job and its entries as they are printed: what is sealed is opened only where
    `show_sealed` says so. A server has decided that by itself.
    """
    if not isinstance(backend, App):
        return job, entries
    sealing = backend.sealing if backend.settings.show_sealed else None
    return shown_job(job, sealing), [shown_entry(job.id, each, sealing) for each in entries]


async def pages(backend: Backend, wanted: JobFilter) -> AsyncIterator[JobPage]:
    """Yield all jobs that match, page by page, newest first."""
    cursor = None
    while True:
        page = await backend.list(wanted, cursor=cursor, limit=PAGE)
        if page.jobs:
            yield page
        cursor = page.cursor
        if cursor is None:
            return


async def running_now(backend: Backend, queues: Sequence[QueueView]) -> RunningJobs:
    """Return what runs now, and what waits in these queues."""
    jobs = [job async for page in pages(backend, RUNNING) for job in page.jobs]
    return RunningJobs.of(jobs, queues, time_now(backend).timestamp())
