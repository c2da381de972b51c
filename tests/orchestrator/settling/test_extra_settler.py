"""Outcomes that are sent while a trip is under way, and tasks that somebody else cancels."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import headrace
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable
from headrace.model.outcome import Settlement
from headrace.model.status import Status
from headrace.model.views import Exchange
from headrace.orchestrator.claiming import dispatcher
from tests.orchestrator.conftest import Worker, ended, until

EXCHANGE_BATCH = 20


class Slow:
    """A real engine whose claims wait, once some jobs have been claimed, until they may go on."""

    def __init__(self, engine: Engine, *, after: int) -> None:
        self._engine = engine
        self._left = after
        self.go_on = asyncio.Event()
        self.beside: list[int] = []
        self.fail_beside = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def exchange(self, settlements: Sequence[Settlement], **options: Any) -> Exchange:
        claims = bool(options.get("limit"))
        if not claims and not self.go_on.is_set():
            if self.fail_beside:
                self.fail_beside -= 1
                raise EngineUnavailable("the line broke")
            self.beside.append(len(settlements))
        elif claims and self._left <= 0:
            await self.go_on.wait()
        reply = await self._engine.exchange(settlements, **options)
        self._left -= len(reply.jobs)
        return reply


@pytest.fixture
def slow(app: headrace.App, monkeypatch: pytest.MonkeyPatch) -> Slow:
    """A trip is under way for as long as the test wants, and a batch is full with 20 outcomes."""
    monkeypatch.setattr(dispatcher, "EXCHANGE_BATCH", EXCHANGE_BATCH)
    slow = Slow(app.engine, after=60)
    app._engine = slow
    return slow


async def test_a_full_batch_of_outcomes_does_not_wait_for_the_trip_that_is_under_way(
    app: headrace.App, slow: Slow, worker: Worker
) -> None:
    @app.task
    async def noop() -> None:
        await asyncio.sleep(0)

    jobs = await app.enqueue_many(noop.job() for _ in range(200))
    orchestrator = worker(app, max_workers=30)
    await orchestrator.start()
    await until(lambda: bool(slow.beside))
    assert min(slow.beside) >= EXCHANGE_BATCH
    slow.go_on.set()
    over = [await ended(app, job) for job in jobs]
    assert {(job.status, job.attempt) for job in over} == {(Status.COMPLETED, 1)}
    await until(lambda: not orchestrator._runtime.dispatcher.held)  # type: ignore[union-attr]


async def test_outcomes_that_were_sent_beside_a_trip_in_vain_go_with_the_next_one(
    app: headrace.App, slow: Slow, worker: Worker
) -> None:
    @app.task
    async def noop() -> None:
        await asyncio.sleep(0)

    slow.fail_beside = 1_000_000
    jobs = await app.enqueue_many(noop.job() for _ in range(200))
    orchestrator = worker(app, max_workers=30)
    await orchestrator.start()
    await until(lambda: slow.fail_beside < 1_000_000)
    # Not again before a trip has come back: whoever is ill must not be hammered.
    assert slow.fail_beside == 999_999
    slow.go_on.set()
    over = [await ended(app, job) for job in jobs]
    assert {(job.status, job.attempt) for job in over} == {(Status.COMPLETED, 1)}


async def test_a_job_that_is_stopped_before_its_first_step_does_not_begin(
    local: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    @local.task
    async def noop() -> None:
        begun.append("noop")

    orchestrator = worker(local)
    await orchestrator.start()
    runtime = orchestrator._runtime
    assert runtime is not None
    fill = runtime.slots.fill

    def fill_and_cancel() -> None:
        fill()
        for attempt in list(runtime.slots.attempts()):
            runtime.cancel(attempt.job.id)

    monkeypatch.setattr(runtime.slots, "fill", fill_and_cancel)
    job = await noop.enqueue()
    assert (await ended(local, job)).status is Status.CANCELLED
    assert not begun
    monkeypatch.setattr(runtime.slots, "fill", fill)
    assert (await ended(local, await noop.enqueue())).status is Status.COMPLETED


async def test_a_slot_survives_somebody_who_cancels_tasks_that_are_not_his(
    local: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @local.task(timeout=None)
    async def noop(ctx: headrace.Context) -> int:
        return ctx.attempt

    orchestrator = worker(local, max_workers=1)
    await orchestrator.start()
    runtime = orchestrator._runtime
    assert runtime is not None
    fill = runtime.slots.fill

    def fill_and_kill() -> None:
        monkeypatch.setattr(runtime.slots, "fill", fill)
        fill()
        [task] = runtime.slots.tasks()
        task.cancel()

    monkeypatch.setattr(runtime.slots, "fill", fill_and_kill)
    first, second = [await noop.enqueue() for _ in range(2)]
    assert (await ended(local, second)).status is Status.COMPLETED
    # Nobody told what became of the first: it is found again, as after a crash.
    await until(lambda: runtime.slots.busy == 0)
    assert (await local.get(first.id)).status is not Status.COMPLETED
