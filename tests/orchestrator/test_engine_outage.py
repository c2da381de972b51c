"""The engine was away and is back: nobody waits longer than it takes to notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable
from headrace.loops import loop
from headrace.loops.loop import LONGEST_ALONE
from headrace.model.durable.writes import Note
from headrace.model.job import Inserted, NewJob
from headrace.model.outcome import Settlement
from headrace.model.status import Status
from headrace.model.views import Due, Exchange
from tests.orchestrator.conftest import Worker, ended, until


class Away:
    """A real engine that does not answer what a worker does on its loop. Leases are renewed on a
    line of their own.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.away: set[str] = set()
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _check(self, verb: str) -> None:
        if verb in self.away:
            self.asked.add(verb)
            raise EngineUnavailable("away")

    async def exchange(self, settlements: Sequence[Settlement], **options: Any) -> Exchange:
        self._check("exchange")
        return await self._engine.exchange(settlements, **options)

    async def write_progress(self, notes: Sequence[Note]) -> tuple[str, ...]:
        self._check("write_progress")
        return await self._engine.write_progress(notes)

    async def insert(self, jobs: Sequence[NewJob], **options: Any) -> list[Inserted]:
        self._check("insert")
        return await self._engine.insert(jobs, **options)

    async def promote_due(self, limit: int) -> Due:
        self._check("promote_due")
        return await self._engine.promote_due(limit)


@pytest.fixture
async def app(url: str, clock: Clock, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App whose lease is renewed often."""
    async with headrace.App(url, clock=clock, lease_seconds=2) as app:
        yield app
        assert await app.engine.audit() == []


@pytest.fixture
def endless_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits out a failure by itself waits for an hour."""
    monkeypatch.setattr(loop, "backoff", lambda failures: 3_600.0)


@pytest.mark.usefixtures("endless_backoff")
async def test_a_renewed_lease_ends_every_back_off_of_its_worker(
    app: headrace.App, worker: Worker
) -> None:
    engine = Away(app.engine)
    app._engine = engine
    began, away = asyncio.Event(), asyncio.Event()

    @app.task
    async def child() -> None: ...

    @app.task
    async def parent(ctx: headrace.Context) -> None:
        began.set()
        await away.wait()
        await ctx.spawn(child.job())

    orchestrator = worker(app)
    await orchestrator.start()
    jobs = [await parent.enqueue(), await child.options(delay=0.5).enqueue()]
    await asyncio.wait_for(began.wait(), 20)
    engine.away = {"exchange", "insert", "promote_due"}
    away.set()
    await until(lambda: engine.asked == engine.away)
    engine.away = set()
    over = [await ended(app, job) for job in jobs]
    assert {job.status for job in over} == {Status.COMPLETED}
    await until(lambda: orchestrator.healthy)


@pytest.mark.usefixtures("endless_backoff")
async def test_a_write_that_waits_for_the_engine_goes_on_with_the_next_renewal(
    app: headrace.App, worker: Worker
) -> None:
    engine = Away(app.engine)
    app._engine = engine

    @app.task
    async def writing(ctx: headrace.Context) -> str:
        return await ctx.stage("one", one)

    async def one() -> str:
        engine.away = {"write_progress", "exchange"}
        return "kept"

    orchestrator = worker(app)
    await orchestrator.start()
    runtime = orchestrator._runtime
    assert runtime is not None
    job = await writing.enqueue()
    await until(lambda: runtime.writer.failures and runtime.dispatcher.failures)
    engine.away = set()
    assert (await ended(app, job)).result == "kept"


async def test_a_worker_without_a_lease_asks_often_since_nobody_tells_it(
    local: headrace.App, worker: Worker
) -> None:
    orchestrator = worker(local)
    await orchestrator.start()
    assert orchestrator._runtime is not None
    dispatcher = orchestrator._runtime.dispatcher
    dispatcher.failures = 10
    assert dispatcher.backoff() == loop.LONGEST_BACKOFF
    registered, dispatcher.worker_id = dispatcher.worker_id, None
    assert dispatcher.backoff() == LONGEST_ALONE
    dispatcher.worker_id, dispatcher.failures = registered, 0


@pytest.mark.usefixtures("endless_backoff")
async def test_a_cron_dispatcher_goes_on_when_its_presence_could_be_told(
    local: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @local.schedule("* * * * *")
    @local.task
    async def report() -> None: ...

    dispatcher = CronDispatcher(local)
    states, failed = dispatcher.schedules.records.states, asyncio.Event()

    async def away() -> Any:
        monkeypatch.setattr(dispatcher.schedules.records, "states", states)
        failed.set()
        raise EngineUnavailable("away")

    monkeypatch.setattr(dispatcher.schedules.records, "states", away)
    dispatcher.start()
    try:
        await asyncio.wait_for(failed.wait(), 20)
        await until(lambda: dispatcher.next_times)
    finally:
        await dispatcher.stop()
