"""An App on each engine whose time begins on a fixed day, and dispatchers on it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.dispatchers.cron.config import CronSettings
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.model.job import Job, JobFilter
from tests.support.verbs import a_worker, claim, complete

START = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)

Maker = Callable[..., CronDispatcher]


@pytest.fixture
def clock() -> Clock:
    """A clock that stands at START, give or take the time that the test takes."""
    clock = Clock()
    clock.offset = START.timestamp() - time.time()
    return clock


@pytest.fixture
async def app(url: str, clock: Clock) -> AsyncIterator[headrace.App]:
    """An App with a task. When the test is over, the store's invariants must hold."""
    async with register(headrace.App(url, clock=clock)) as app:
        yield app
        assert await app.engine.audit() == []


@pytest.fixture
async def local(clock: Clock, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """The same on the embedded engine, for what does not depend on the engine."""
    async with register(headrace.App(f"sqlite:///{tmp_path}/here.db", clock=clock)) as app:
        yield app


def register(app: headrace.App) -> headrace.App:
    @app.task("report", lane="reports:{shop}")
    async def report(shop: str = "all", days: int = 1) -> None: ...

    @app.task("clean")
    async def clean() -> None: ...

    return app


@pytest.fixture
async def make() -> AsyncIterator[Maker]:
    """Makes dispatchers; those that were started are stopped before their App is closed."""
    made: list[CronDispatcher] = []

    def maker(app: headrace.App, **settings: Any) -> CronDispatcher:
        made.append(CronDispatcher(app, settings=CronSettings(**settings)))
        return made[-1]

    yield maker
    for dispatcher in made:
        await dispatcher.stop()


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def go_to(clock: Clock, moment: datetime) -> None:
    """Let time pass until a moment."""
    clock.advance((moment - clock.utcnow()).total_seconds())


async def settled(dispatcher: CronDispatcher) -> None:
    """Rounds until nothing is left to do now."""
    while await dispatcher.tick() < 0.01:
        pass


async def jobs_of(app: headrace.App, task: str = "") -> list[Job]:
    """The jobs that exist, in the order of their times."""
    page = await app.engine.list_jobs(JobFilter(tasks=(task,) if task else ()), limit=1_000)
    return sorted(page.jobs, key=lambda job: job.run_at)


async def made_for(app: headrace.App, task: str = "") -> list[str]:
    """The times for which jobs exist."""
    return [f"{job.run_at:%m-%d %H:%M}" for job in await jobs_of(app, task)]


async def finish_all(app: headrace.App) -> int:
    """Let a worker complete everything that is ready."""
    worker = await a_worker(app.engine)
    count = 0
    while jobs := await claim(app.engine, worker, 100):
        for job in jobs:
            assert await complete(app.engine, job)
            count += 1
    return count


def hours(number: float) -> timedelta:
    return timedelta(hours=number)
