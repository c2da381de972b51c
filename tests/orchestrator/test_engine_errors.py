"""An engine that fails, answers into the void, or comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import headrace
from headrace.engine.base import Engine
from headrace.errors import EngineError, EngineUnavailable
from headrace.model.outcome import Completed, Settlement
from headrace.model.status import Status
from headrace.model.views import Exchange
from tests.orchestrator.conftest import Worker, ended, until


class Flaky:
    """A real engine behind a line that breaks when the test says so."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.lose_requests = 0
        self.lose_replies = 0
        self.poison: str | None = None
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def exchange(self, settlements: Sequence[Settlement], **options: Any) -> Exchange:
        self.calls += 1
        if self.lose_requests:
            self.lose_requests -= 1
            raise EngineUnavailable("the line broke before the request arrived")
        if any(
            isinstance(each.outcome, Completed) and each.job_id == self.poison
            for each in settlements
        ):
            raise EngineError("this outcome cannot be stored")
        reply = await self._engine.exchange(settlements, **options)
        if self.lose_replies and (settlements or reply.jobs):
            self.lose_replies -= 1
            raise EngineUnavailable("the line broke before the reply arrived")
        return reply


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same back-off, a hundred times faster."""
    from headrace.loops import loop

    whole = loop.backoff
    monkeypatch.setattr(loop, "backoff", lambda failures: whole(failures) / 100)


def behind_a_flaky_line(app: headrace.App) -> Flaky:
    flaky = Flaky(app.engine)
    app._engine = flaky
    return flaky


async def test_jobs_whose_claim_was_answered_into_the_void_are_run(
    app: headrace.App, worker: Worker
) -> None:
    flaky = behind_a_flaky_line(app)

    @app.task
    async def noop(ctx: headrace.Context) -> int:
        return ctx.attempt

    jobs = await app.enqueue_many(noop.job() for _ in range(50))
    flaky.lose_replies = 1
    orchestrator = worker(app)
    await orchestrator.start()
    over = [await ended(app, job) for job in jobs]
    assert {(job.status, job.result) for job in over} == {(Status.COMPLETED, 1)}
    assert orchestrator.telemetry.adopted == 10
    assert orchestrator.healthy


async def test_outcomes_whose_exchange_failed_are_sent_again(
    app: headrace.App, worker: Worker
) -> None:
    flaky = behind_a_flaky_line(app)
    runs: list[str] = []

    @app.task
    async def once(ctx: headrace.Context) -> None:
        runs.append(ctx.job_id)

    orchestrator = worker(app)
    await orchestrator.start()
    for loses in ("lose_requests", "lose_replies"):
        runs.clear()
        jobs = await app.enqueue_many(once.job() for _ in range(30))
        await until(lambda: runs)
        setattr(flaky, loses, 2)
        over = [await ended(app, job) for job in jobs]
        assert {job.status for job in over} == {Status.COMPLETED}
        assert sorted(runs) == sorted(job.id for job in jobs), "none ran twice"


async def test_a_worker_is_unhealthy_after_three_failures_and_heals(
    app: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    flaky = behind_a_flaky_line(app)

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    orchestrator = worker(app)
    await orchestrator.start()
    assert orchestrator.healthy
    flaky.lose_requests = 1_000_000
    await until(lambda: not orchestrator.healthy)
    assert orchestrator.running
    assert "unhealthy" in caplog.text
    job = await add.enqueue(1, 2)
    flaky.lose_requests = 0
    assert await app.result(job.id, timeout=20) == 3
    assert orchestrator.healthy
    assert "works again after" in caplog.text
    # An outage is a few lines, not one per failure.
    assert caplog.text.count("dispatcher failed") <= 3


async def test_a_worker_that_is_told_so_gives_up(
    here: str, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    async with headrace.App(here, connection_retries=2) as app:
        flaky = behind_a_flaky_line(app)
        orchestrator = worker(app)
        await orchestrator.start()
        flaky.lose_requests = 1_000_000
        with pytest.raises(headrace.WorkerUnhealthy, match="3 times in a row"):
            await asyncio.wait_for(orchestrator.wait(), 20)
        assert not orchestrator.healthy
        assert "The worker gave up" in caplog.text
        flaky.lose_requests = 0
        await orchestrator.stop()
        assert not orchestrator.running


async def test_others_take_over_from_a_worker_that_gave_up_and_that_nobody_waits_for(
    here: str, worker: Worker
) -> None:
    async with (
        headrace.App(here, connection_retries=0, lease_seconds=1.0) as app,
        headrace.App(here, lease_seconds=1.0) as other,
    ):
        flaky = behind_a_flaky_line(app)
        started, stopped = asyncio.Event(), asyncio.Event()

        @app.task("work")
        async def first() -> str:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return "first"

        @other.task("work")
        async def second() -> str:
            return "second"

        job = await first.enqueue()
        gives_up = worker(app, name="first")
        await gives_up.start()
        await asyncio.wait_for(started.wait(), 20)
        # Only the dispatcher has trouble: the lease could still be renewed.
        flaky.lose_requests = 1_000_000
        runtime = gives_up._runtime
        assert runtime is not None
        runtime.dispatcher.on_work_signal()
        await until(lambda: gives_up.failure is not None)
        # What cannot be settled any more does not run on beside the take-over.
        await asyncio.wait_for(stopped.wait(), 20)
        await worker(other, name="second").start()
        assert await other.result(job.id, timeout=20) == "second"
        flaky.lose_requests = 0


async def test_nobody_waits_for_ever_until_a_worker_is_idle_that_gave_up(
    here: str, worker: Worker
) -> None:
    async with headrace.App(here, connection_retries=0) as app:
        flaky = behind_a_flaky_line(app)

        @app.task
        async def noop() -> None: ...

        await noop.enqueue()
        flaky.lose_requests = 1_000_000
        with pytest.raises(headrace.WorkerUnhealthy, match="before everything was done: the line"):
            await asyncio.wait_for(worker(app).run_until_idle(), 20)


async def test_a_worker_that_gave_up_can_be_started_again(here: str, worker: Worker) -> None:
    async with headrace.App(here, connection_retries=0) as app:
        flaky = behind_a_flaky_line(app)

        @app.task
        async def add(a: int, b: int) -> int:
            return a + b

        orchestrator = worker(app)
        await orchestrator.start()
        flaky.lose_requests = 1_000_000
        job = await add.enqueue(1, 2)
        with pytest.raises(headrace.WorkerUnhealthy):
            await asyncio.wait_for(orchestrator.wait(), 20)
        flaky.lose_requests = 0
        await asyncio.wait_for(orchestrator.start(), 20)
        assert await app.result(job.id, timeout=10) == 3
        assert orchestrator.healthy


async def test_an_outcome_that_cannot_be_stored_does_not_hold_up_the_others(
    local: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    flaky = behind_a_flaky_line(local)

    @local.task
    async def noop() -> None: ...

    jobs = await local.enqueue_many(noop.job() for _ in range(40))
    flaky.poison = jobs[7].id
    await worker(local).start()
    over = [await ended(local, job) for job in jobs]
    assert over[7].status is Status.FAILED
    assert over[7].error_type == "SettleError"
    assert {job.status for job in over[:7] + over[8:]} == {Status.COMPLETED}
    assert "cannot record the outcome" in caplog.text


async def test_stop_while_the_engine_is_away_ends_and_says_so(
    local: headrace.App,
    worker: Worker,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from headrace.orchestrator import shutdown

    monkeypatch.setattr(shutdown, "SETTLE_PATIENCE", 0.2)
    flaky = behind_a_flaky_line(local)
    started, release = asyncio.Event(), asyncio.Event()

    @local.task
    async def held() -> None:
        started.set()
        await release.wait()

    orchestrator = worker(local)
    await orchestrator.start()
    job = await held.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    flaky.lose_requests = 1_000_000
    release.set()
    await orchestrator.stop()
    assert "could not record the outcomes of 1 jobs" in caplog.text
    # The worker took leave, so the sweep of the next one takes over without waiting.
    flaky.lose_requests = 0
    await worker(local).start()
    assert (await ended(local, job)).attempt == 2


async def test_a_forgotten_job_is_found_by_two_checks_in_a_row(here: str, worker: Worker) -> None:
    async with headrace.App(here, lease_seconds=1) as app:

        @app.task
        async def noop() -> int:
            return 1

        orchestrator = worker(app)
        await orchestrator.start()
        await app.engine.pause("default", True)
        job = await noop.enqueue()
        await app.engine.pause("other", True)
        # Somebody claims in this worker's name, and the worker never hears of it.
        await app.engine.pause("default", False)
        assert orchestrator.worker_id is not None
        await app.engine.exchange([], worker_id=orchestrator.worker_id, limit=1)
        assert (await ended(app, job)).result == 1
