"""Attempts that are told to stop: out of time, cancelled, or the worker stops."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, became, ended, until


class Spy:
    """What a handler saw, and a way to hold it until the test lets go."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.saw: list[str] = []

    async def hang(self) -> None:
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.saw.append("cancelled")
            raise

    async def begun(self) -> None:
        await asyncio.wait_for(self.started.wait(), 20)


async def test_a_handler_that_runs_out_of_time_is_cancelled_and_tried_again(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    spy = Spy()

    @app.task(timeout=0.05, retries=1)
    async def slow() -> None:
        await spy.hang()

    orchestrator = worker(app)
    job = await slow.enqueue()
    await orchestrator.run_until_idle()
    waiting = await app.get(job.id)
    assert (waiting.status, waiting.error_type) == (Status.SCHEDULED, "TimedOut")
    clock.advance(5)
    await orchestrator.run_until_idle()
    over = await app.get(job.id)
    assert (over.status, over.attempt) == (Status.TIMEOUT, 2)
    assert over.error == "attempt 2 of 2 did not finish within 0.05 s"
    assert spy.saw == ["cancelled"] * 2


async def test_a_thread_that_runs_out_of_time_is_left_behind(
    app: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    release, told = threading.Event(), threading.Event()

    @app.task(timeout=0.05, retries=0)
    def stubborn(ctx: headrace.Context) -> str:
        while not ctx.cancelled:
            time.sleep(0.001)
        told.set()
        release.wait(20)
        return "too late"

    @app.task()
    def quick() -> int:
        return 1

    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    job = await stubborn.enqueue()
    over = await ended(app, job)
    assert over.status is Status.TIMEOUT
    await until(told.is_set)
    assert orchestrator.stuck_threads == 1
    assert "cannot be stopped" in caplog.text
    # The slot is free, and the stuck thread is not in the way.
    assert await app.result((await quick.enqueue()).id, timeout=20) == 1
    release.set()
    await until(lambda: orchestrator.stuck_threads == 0)
    assert (await app.get(job.id)).status is Status.TIMEOUT


async def test_a_handler_that_ignores_the_cancel_is_given_up(
    here: str, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    async with headrace.App(here, grace_seconds=0.1) as app:
        release = asyncio.Event()

        @app.task(timeout=0.05, retries=0)
        async def stubborn() -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return "too late"

        @app.task
        async def quick() -> int:
            return 1

        orchestrator = worker(app, max_workers=1)
        await orchestrator.start()
        job = await stubborn.enqueue()
        assert (await ended(app, job)).status is Status.TIMEOUT
        assert "was told to stop (timeout) and does not" in caplog.text
        assert await app.result((await quick.enqueue()).id, timeout=20) == 1
        assert len(orchestrator.workers) == 1
        assert orchestrator.telemetry.abandoned == 1
        release.set()
        await orchestrator.stop()
        assert (await app.get(job.id)).status is Status.TIMEOUT


async def test_a_running_handler_is_told_of_a_cancel_at_once(
    app: headrace.App, worker: Worker
) -> None:
    spy = Spy()

    @app.task
    async def slow() -> None:
        await spy.hang()

    await worker(app).start()
    job = await slow.enqueue()
    await spy.begun()
    began = time.monotonic()
    await app.cancel(job.id)
    over = await ended(app, job)
    assert over.status is Status.CANCELLED
    assert time.monotonic() - began < 2
    assert spy.saw == ["cancelled"]
    assert [entry.outcome for entry in over.attempts] == ["cancelled"]


async def test_a_handler_that_finishes_in_spite_of_a_cancel_completes(
    app: headrace.App, worker: Worker
) -> None:
    spy = Spy()

    @app.task
    async def finishing() -> str:
        try:
            await spy.hang()
        except asyncio.CancelledError:
            return "all done"
        return "never"

    await worker(app).start()
    job = await finishing.enqueue()
    await spy.begun()
    await app.cancel(job.id)
    over = await ended(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, "all done")


async def test_a_thread_is_told_of_a_cancel_and_may_leave(
    app: headrace.App, worker: Worker
) -> None:
    started = threading.Event()

    @app.task()
    def looking(ctx: headrace.Context) -> str:
        started.set()
        while not ctx.cancelled:
            time.sleep(0.001)
        return "left early"

    orchestrator = worker(app)
    await orchestrator.start()
    job = await looking.enqueue()
    await until(started.is_set)
    await app.cancel(job.id)
    assert (await ended(app, job)).status is Status.CANCELLED
    assert orchestrator.stuck_threads == 0


async def test_a_thread_that_does_not_look_completes_in_spite_of_a_cancel(
    local: headrace.App, worker: Worker
) -> None:
    started, release = threading.Event(), threading.Event()

    @local.task()
    def blind() -> str:
        started.set()
        release.wait(20)
        return "done"

    await worker(local).start()
    job = await blind.enqueue()
    await until(started.is_set)
    await local.cancel(job.id)
    release.set()
    over = await ended(local, job)
    assert (over.status, over.result) == (Status.COMPLETED, "done")


async def test_a_claimed_job_that_waits_for_a_slot_can_be_cancelled(
    app: headrace.App, worker: Worker
) -> None:
    spy = Spy()

    @app.task
    async def slow() -> None:
        await spy.hang()

    @app.task
    async def noop() -> None: ...

    orchestrator = worker(app, max_workers=1)
    # Many short jobs make the worker claim ahead; then a long one blocks its only slot.
    await app.enqueue_many(noop.job() for _ in range(100))
    await orchestrator.run_until_idle()
    await orchestrator.start()
    await app.enqueue_many(noop.job() for _ in range(100))
    first, second = await slow.enqueue(), await slow.enqueue()
    await spy.begun()
    await app.cancel(second.id)
    assert (await ended(app, second)).status is Status.CANCELLED
    await app.cancel(first.id)
    assert (await ended(app, first)).status is Status.CANCELLED
    assert spy.saw == ["cancelled"]


async def test_stop_gives_back_unstarted_jobs_and_finishes_running_ones(
    app: headrace.App, worker: Worker
) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @app.task
    async def short() -> None: ...

    @app.task
    async def held() -> str:
        started.set()
        await release.wait()
        return "finished"

    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    await app.enqueue_many(short.job() for _ in range(200))
    await orchestrator.run_until_idle()  # it claims ahead now
    jobs = await app.enqueue_many([held.job(), *(short.job() for _ in range(20))])
    await asyncio.wait_for(started.wait(), 20)
    await until(lambda: orchestrator.internal_queue.qsize() > 0)
    stopping = asyncio.create_task(orchestrator.stop())
    await until(orchestrator.internal_queue.empty)
    assert not stopping.done()
    release.set()
    await stopping
    over = await app.get(jobs[0].id)
    assert (over.status, over.result) == (Status.COMPLETED, "finished")
    for job in jobs[1:]:
        back = await app.get(job.id)
        assert (back.status, back.attempt, back.attempts) == (Status.PENDING, 0, [])


async def test_what_exceeds_the_grace_time_runs_elsewhere(
    app: headrace.App, worker: Worker
) -> None:
    spy = Spy()

    @app.task(retries=1)
    async def slow(ctx: headrace.Context) -> int:
        if ctx.attempt == 1:
            await spy.hang()
        return ctx.attempt

    @app.task(retries=0)
    async def only_once() -> None:
        await spy.hang()

    orchestrator = worker(app)
    await orchestrator.start()
    job, last = await slow.enqueue(), await only_once.enqueue()
    await became(app, last, Status.RUNNING)
    await became(app, job, Status.RUNNING)
    await spy.begun()
    await orchestrator.stop(grace=0.01)
    again = await app.get(job.id)
    assert (again.status, again.attempt) == (Status.PENDING, 1)
    [entry] = again.attempts
    assert entry.failure is not None
    assert entry.failure.type == "WorkerStopped"
    assert (await app.get(last.id)).status is Status.FAILED
    await worker(app).run_until_idle()
    assert (await app.get(job.id)).result == 2


async def test_a_cancelled_stop_goes_on(local: headrace.App, worker: Worker) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @local.task
    async def held() -> str:
        started.set()
        await release.wait()
        return "finished"

    orchestrator = worker(local)
    await orchestrator.start()
    job = await held.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    stopping = asyncio.create_task(orchestrator.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    release.set()
    await orchestrator.stop()
    assert orchestrator.workers == []
    assert (await local.get(job.id)).result == "finished"


async def test_stop_loses_nothing_at_whatever_moment_it_comes(
    app: headrace.App, worker: Worker
) -> None:
    @app.task
    async def noop() -> None:
        await asyncio.sleep(0)

    jobs = await app.enqueue_many(noop.job() for _ in range(400))
    orchestrator = worker(app)
    for steps in range(0, 400, 13):
        await orchestrator.start()
        for _ in range(steps):
            await asyncio.sleep(0)
        await orchestrator.stop()
        left = await app.engine.get([job.id for job in jobs])
        assert {job.status for job in left} <= {Status.PENDING, Status.COMPLETED}
    await orchestrator.run_until_idle()
    over = await app.engine.get([job.id for job in jobs])
    assert {(job.status, job.attempt) for job in over} == {(Status.COMPLETED, 1)}
    assert orchestrator.telemetry.outcomes() == {"completed": 400}


async def test_cancels_of_jobs_that_have_ended_or_gone_back_are_forgotten(
    local: headrace.App, worker: Worker
) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @local.task
    async def held() -> None:
        started.set()
        await release.wait()

    orchestrator = worker(local, max_workers=1)
    await orchestrator.start()
    runtime = orchestrator._runtime
    assert runtime is not None
    await held.enqueue()
    # Before it has begun, its attempt would take the cancel as meant for it.
    await asyncio.wait_for(started.wait(), 20)
    [(job_id, token)] = runtime.dispatcher.held.items()
    # One of an earlier lease, and one that came after the attempt had ended.
    runtime.executor.cancelled_before_start["gone back"] = 1
    runtime.executor.cancelled_before_start[job_id] = token
    runtime.lease_thread.renew_now()
    await until(lambda: "gone back" not in runtime.executor.cancelled_before_start)
    assert runtime.executor.cancelled_before_start == {job_id: token}
    release.set()
    await until(lambda: not runtime.dispatcher.held)
    runtime.lease_thread.renew_now()
    await until(lambda: not runtime.executor.cancelled_before_start)
