"""Apps on one store as different programs have them, and a service that can be broken."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.model.limits.breaker import Breaker, BreakerView
from headrace.server.auth.audit_pages import AuditFilter, read_page
from tests.support.processes import Processes, until

PAUSE = 1.0
LANE = "task:call"


class Service:
    """What handlers call. It counts its calls and fails while it is broken."""

    def __init__(self) -> None:
        self.broken = True
        self.calls: list[float] = []
        self.running = 0
        self.go = asyncio.Event()
        self.slow = False

    async def call(self) -> None:
        self.calls.append(time.time())
        self.running += 1
        try:
            await (self.go.wait() if self.slow else asyncio.sleep(0.01))
            if self.broken:
                raise ConnectionError("the service is away")
        finally:
            self.running -= 1


Program = Callable[..., headrace.App]


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
async def program(service: Service) -> AsyncIterator[Program]:
    """Makes Apps with a task that calls the service; they are closed after the test."""
    made: list[headrace.App] = []

    def make(url: str, breaker: Breaker | None = None, **options: Any) -> headrace.App:
        app = headrace.App(url)
        made.append(app)
        chosen = breaker or Breaker(failures=3, within=60, pause=PAUSE)
        if "lane" not in options:
            options["breaker"] = chosen

        @app.task(**{"retries": 0, **options})
        async def call(number: int = 0) -> int:
            await service.call()
            return number

        return app

    yield make
    for app in made:
        await app.open()
        assert await app.engine.audit() == []
        await app.close()


Starter = Callable[..., Any]


@pytest.fixture
async def start(program: Program) -> AsyncIterator[Starter]:
    """Starts workers, which end with the test."""
    made: list[headrace.JobOrchestrator] = []

    async def one(app: headrace.App, **options: Any) -> headrace.JobOrchestrator:
        worker = headrace.JobOrchestrator(app, **{"max_workers": 2, **options})
        made.append(worker)
        await worker.start()
        return worker

    yield one
    for worker in made:
        await worker.stop(grace=0)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as some:
        yield some


async def enqueue(app: headrace.App, count: int, task: str = "call") -> list[str]:
    jobs = await app.enqueue_many(app.tasks[task].job(number) for number in range(count))
    return [job.id for job in jobs]


async def opened(app: headrace.App) -> BreakerView:
    """Wait until a breaker is open, and return it."""
    [found] = await until(app.breakers, "a breaker opens")
    return found


async def closed(app: headrace.App) -> None:
    """Wait until none is open."""

    async def none() -> bool:
        return not await app.breakers()

    await until(none, "it closes")


async def all_done(app: headrace.App, ids: list[str]) -> list[str]:
    """Wait until all of these jobs are over, and return their statuses."""

    async def over() -> list[str]:
        jobs = await app.engine.get(ids)
        done = all(job.status.final for job in jobs)
        return [job.status.value for job in jobs] if done else []

    return await until(over, "all are over", 60)


async def audited(app: headrace.App) -> list[tuple[str, str]]:
    """Return what the audit log tells of breakers, the newest first: what was done, and by whom."""
    page = await read_page(app.engine, AuditFilter(action="breaker"), before=None, limit=100)
    return [(each.action, each.who) for each in page.entries]


def trials(service: Service, view: BreakerView) -> list[float]:
    """Return the calls after the first pause. Before it, what was claimed before the lane was held
    may still have started.
    """
    return [at for at in service.calls if at > view.since.timestamp() + 0.8 * view.pause]


def apart(calls: list[float]) -> float:
    """Return the least time between two calls."""
    return min((b - a for a, b in itertools.pairwise(calls)), default=float("inf"))
