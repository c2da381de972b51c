"""Stopping at an odd moment: while the worker starts, and when the last job has just ended."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import headrace
from headrace.engine.base import Engine
from headrace.model.status import Status
from headrace.model.worker import WorkerInfo
from headrace.orchestrator.running.attempt import monotonic
from headrace.orchestrator.shutdown import _finish_running
from tests.orchestrator.conftest import Worker, ended, until


class SlowToRegister:
    """A real engine that a worker is introduced to only when the test says so."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        self.asked.set()
        await self.go_on.wait()
        await self._engine.register(worker, lease_seconds)


async def test_a_worker_that_is_stopped_while_it_starts_does_not_run(
    app: headrace.App, worker: Worker
) -> None:
    engine = SlowToRegister(app.engine)
    app._engine = engine
    runs: list[str] = []

    @app.task
    async def noop(ctx: headrace.Context) -> None:
        runs.append(ctx.job_id)

    job = await noop.enqueue()
    orchestrator = worker(app)
    starting = asyncio.create_task(orchestrator.start())
    await asyncio.wait_for(engine.asked.wait(), 20)
    stopping = asyncio.create_task(orchestrator.stop())
    await asyncio.sleep(0)
    engine.go_on.set()
    await asyncio.wait_for(stopping, 20)
    assert not orchestrator.running
    with pytest.raises(headrace.WorkerUnhealthy, match="stopped while it started"):
        await starting
    assert not any(seen.alive for seen in await app.engine.workers())
    assert (await app.get(job.id)).status is Status.PENDING
    assert not runs
    # It is none the worse for it.
    await orchestrator.start()
    assert (await ended(app, job)).status is Status.COMPLETED


async def test_a_stop_reaches_a_start_that_waits_for_an_earlier_stop(
    local: headrace.App, worker: Worker
) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    @local.task
    async def held() -> None:
        began.set()
        await go_on.wait()

    orchestrator = worker(local)
    await orchestrator.start()
    await held.enqueue()
    await asyncio.wait_for(began.wait(), 20)
    first = asyncio.create_task(orchestrator.stop())
    await asyncio.sleep(0)
    again = asyncio.create_task(orchestrator.start())
    await asyncio.sleep(0)
    second = asyncio.create_task(orchestrator.stop())
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait_for(asyncio.gather(first, second), 20)
    with pytest.raises(headrace.WorkerUnhealthy, match="stopped while it started"):
        await again
    assert not orchestrator.running


async def test_a_worker_whose_lease_thread_cannot_be_started_takes_leave(
    local: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(thread: threading.Thread) -> None:
        if thread.name == "headrace-lease":
            raise RuntimeError("can't start new thread")
        start(thread)

    start: Callable[[threading.Thread], None] = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    orchestrator = worker(local)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await orchestrator.start()
    assert not any(seen.alive for seen in await local.engine.workers())
    assert not orchestrator.running


async def test_a_stop_does_not_wait_when_the_last_job_has_ended_and_nobody_has_heard(
    local: headrace.App, worker: Worker
) -> None:
    began, go_on = threading.Event(), threading.Event()

    @local.task
    def held() -> None:
        began.set()
        go_on.wait(20)

    orchestrator = worker(local)
    await orchestrator.start()
    runtime = orchestrator._runtime
    assert runtime is not None
    job = await held.enqueue()
    await until(began.is_set)
    go_on.set()
    limit = time.monotonic() + 20
    # The event loop hears nothing of this yet.
    while not runtime.slots.thread_chain._over and time.monotonic() < limit:
        time.sleep(0.001)  # noqa: ASYNC251
    runtime.grace_until = monotonic() + 60
    async with asyncio.timeout(10):  # in this very task, so that the loop has no turn before
        await _finish_running(runtime)
    runtime.grace_until = float("inf")
    assert (await ended(local, job)).status is Status.COMPLETED
