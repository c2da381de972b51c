"""An App on each engine, and workers that end with the test."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.job import Job
from headrace.model.status import Status
from tests.orchestrator.chunk_support import Calls

# For what comes soon on a machine that does nothing else.
LIMIT = 60.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def app(url: str, clock: Clock, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on each engine. When the test is over, the store's invariants must hold."""
    async with headrace.App(url, clock=clock, artifacts=str(tmp_path / "artifacts")) as app:
        yield app
        assert await app.engine.audit() == []


@pytest.fixture
async def local(here: str, clock: Clock, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on the embedded engine."""
    async with headrace.App(here, clock=clock, artifacts=str(tmp_path / "artifacts")) as app:
        yield app
        assert await app.engine.audit() == []


@pytest.fixture
def calls() -> Calls:
    """What calls a handler of chunks got."""
    return Calls()


class Worker(Protocol):
    def __call__(self, app: headrace.App, **options: Any) -> headrace.JobOrchestrator: ...


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    """Makes workers; the test starts them, and they are stopped before its App is closed.

    Fixtures end in reverse order, so a test names its App first.
    """
    made: list[headrace.JobOrchestrator] = []

    def make(app: headrace.App, **options: Any) -> headrace.JobOrchestrator:
        made.append(headrace.JobOrchestrator(app, **options))
        return made[-1]

    yield make
    for orchestrator in made:
        await orchestrator.stop(grace=0)


async def until(condition: Callable[[], Any | Awaitable[Any]], limit: float = LIMIT) -> Any:
    """Wait for a condition, with a limit. Answers what it answered."""
    end = asyncio.get_running_loop().time() + limit
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert asyncio.get_running_loop().time() < end, f"not within {limit} s"
        await asyncio.sleep(0.005)


async def ended(app: headrace.App, job: Job | str) -> Job:
    """Wait until a job has a final status."""
    job_id = job if isinstance(job, str) else job.id

    async def final() -> Job | None:
        now = await app.get(job_id)
        return now if now.status.final else None

    found: Job = await until(final)
    return found


async def became(app: headrace.App, job: Job, status: Status) -> Job:
    """Wait until a job has this status."""

    async def it() -> Job | None:
        now = await app.get(job.id)
        return now if now.status is status else None

    found: Job = await until(it)
    return found
