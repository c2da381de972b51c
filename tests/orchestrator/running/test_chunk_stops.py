"""Chunks that are cancelled, run out of time or are stopped with their worker."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.job import Job
from headrace.model.status import Status
from tests.orchestrator.chunk_support import Calls, Row, fill, statuses, waiting
from tests.orchestrator.conftest import Worker, became, ended, until

# --- cancelled


async def test_a_job_that_waits_for_its_chunk_is_cancelled_at_once(
    app: headrace.App, worker: Worker, clock: Clock, calls: Calls
) -> None:
    @app.task(chunk=50, chunk_wait=10)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    orchestrator = worker(app)
    await orchestrator.start()
    jobs = await fill(app, store, 3)
    await waiting(orchestrator, 3)
    await app.cancel(jobs[1].id)
    assert (await ended(app, jobs[1])).status is Status.CANCELLED
    assert calls.seen == []
    clock.advance(10.5)
    await ended(app, jobs[2])
    assert calls.seen == [[0, 2]]


async def test_one_job_of_a_running_chunk_is_cancelled_alone(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=3)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)
        await until(lambda: chunk[1].cancelled)
        assert not chunk[0].cancelled
        assert not chunk.cancelled
        await calls.release.wait()

    jobs = await fill(app, store, 3)
    await worker(app).start()
    await calls.started()
    await app.cancel(jobs[1].id)
    calls.release.set()
    for job in jobs:
        await ended(app, job)
    assert await statuses(app, jobs) == [Status.COMPLETED, Status.CANCELLED, Status.COMPLETED]


async def test_work_that_is_done_counts_although_it_was_cancelled(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    """As for a handler of one job: nobody looked, or it says that it is done."""

    @app.task(chunk=3, retries=5)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)
        await until(lambda: chunk[1].cancelled)
        chunk[1].complete("done all the same")
        await calls.release.wait()
        chunk[2].fail(OSError("it would be tried again"))

    jobs = await fill(app, store, 3)
    await worker(app).start()
    await calls.started()
    await app.cancel(jobs[1].id)
    await ended(app, jobs[1])
    await app.cancel(jobs[2].id)
    calls.release.set()
    for job in jobs:
        await ended(app, job)
    assert await statuses(app, jobs) == [Status.COMPLETED, Status.COMPLETED, Status.CANCELLED]


async def test_a_call_stops_when_all_its_jobs_are_cancelled(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    stopped: list[bool] = []

    @app.task(chunk=3)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        chunk[0].complete()
        calls.note(chunk)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(chunk.cancelled)
            raise

    jobs = await fill(app, store, 3)
    await worker(app).start()
    await calls.started()
    await app.cancel(jobs[1].id)
    await asyncio.sleep(0)
    assert not stopped
    await app.cancel(jobs[2].id)
    for job in jobs:
        await ended(app, job)
    assert stopped == [True]
    assert await statuses(app, jobs) == [Status.COMPLETED, Status.CANCELLED, Status.CANCELLED]


@pytest.mark.parametrize("asks", ["the chunk", "a job"])
async def test_a_thread_that_is_told_to_stop_has_not_done_the_rest(
    app: headrace.App, worker: Worker, asks: str
) -> None:
    begun = threading.Event()

    @app.task(chunk=4)
    def store(chunk: headrace.Chunk[Row]) -> None:
        chunk[0].complete()
        begun.set()
        while not (chunk.cancelled if asks == "the chunk" else chunk[3].cancelled):
            time.sleep(0.002)

    jobs = await fill(app, store, 4)
    await worker(app).start()
    await until(begun.is_set)
    for job in jobs[1:]:
        await app.cancel(job.id)
    for job in jobs:
        await ended(app, job)
    assert await statuses(app, jobs) == [Status.COMPLETED] + [Status.CANCELLED] * 3


# --- out of time


async def test_the_time_limit_is_that_of_the_call(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    @app.task(chunk=3, timeout=0.05, retries=1)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        chunk[0].complete("in time")
        await asyncio.Event().wait()

    jobs = await fill(app, store, 3)
    await worker(app).run_until_idle()
    assert await statuses(app, jobs) == [Status.COMPLETED, Status.SCHEDULED, Status.SCHEDULED]
    clock.advance(6)
    await worker(app).run_until_idle()
    found = [await app.get(job.id) for job in jobs]
    assert sorted(job.status for job in found) == ["completed", "completed", "timeout"]
    [late] = [job for job in found if job.status is Status.TIMEOUT]
    assert late.error == "attempt 2 of 2 did not finish within 0.05 s"


async def test_a_thread_that_does_not_stop_is_left_behind(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    begun, release, refused = threading.Event(), threading.Event(), threading.Event()

    @app.task(chunk=2, timeout=60, retries=0)
    def stubborn(chunk: headrace.Chunk[Row]) -> None:
        begun.set()
        release.wait(20)
        try:
            chunk[0].complete("too late")
        except headrace.LeaseLost:
            refused.set()

    @app.task
    async def quick() -> int:
        return 1

    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    jobs = await fill(app, stubborn, 2)
    await until(begun.is_set)
    clock.advance(61)
    for job in jobs:
        assert (await ended(app, job)).status is Status.TIMEOUT
    assert (await ended(app, await quick.enqueue())).result == 1
    release.set()
    await until(refused.is_set)
    assert await statuses(app, jobs) == [Status.TIMEOUT] * 2


# --- the worker stops, or loses its lease


async def test_a_worker_that_stops_gives_waiting_jobs_back_unharmed(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=50, chunk_wait=600, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    first = worker(app)
    await first.start()
    jobs = await fill(app, store, 5)
    await waiting(first, 5)
    await first.stop()
    for job in jobs:
        found = await became(app, job, Status.PENDING)
        assert (found.attempt, found.attempts) == (0, [])
    await worker(app).run_until_idle()
    assert calls.seen == [[0, 1, 2, 3, 4]]
    assert {(await app.get(job.id)).attempt for job in jobs} == {1}


async def test_a_running_chunk_may_finish_and_is_tried_again_otherwise(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=3, retries=1)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        if chunk[0].attempt == 1:
            chunk[0].complete("before")
            await calls.hold(chunk)

    first = worker(app)
    await first.start()
    jobs = await fill(app, store, 3)
    fragile = await app.engine.get([job.id for job in jobs])
    assert {job.on_crash for job in fragile} == {"retry"}
    await calls.started()
    await first.stop(grace=0)
    await worker(app).run_until_idle()
    found = [await app.get(job.id) for job in jobs]
    assert [(job.status, job.attempt) for job in found] == [
        (Status.COMPLETED, 1),
        (Status.COMPLETED, 2),
        (Status.COMPLETED, 2),
    ]
    assert found[1].attempts[0].failure is not None
    assert found[1].attempts[0].failure.type == "WorkerStopped"


async def test_a_chunk_that_finds_no_slot_goes_to_another_worker(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    release, started = asyncio.Event(), asyncio.Event()

    @app.task(chunk=2, chunk_wait=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    @app.task
    async def long() -> None:
        started.set()
        await release.wait()

    busy = worker(app, max_workers=1)
    await busy.start()
    # Short ones first, so that it claims ahead.
    await fill(app, store, 100)
    await busy.run_until_idle()
    blocking = await long.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    jobs = await fill(app, store, 10)
    other = worker(app)
    await other.start()
    for job in jobs:
        over: Job = await ended(app, job)
        assert (over.status, over.attempt) == (Status.COMPLETED, 1)
    release.set()
    await ended(app, blocking)


async def test_a_job_that_another_worker_has_taken_is_lost_alone(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=2, retries=3)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        if chunk[0].attempt > 1:
            return
        calls.note(chunk)
        await until(lambda: chunk[1].cancelled)
        assert not chunk[0].cancelled
        chunk[1].complete("what nobody wants any more")

    orchestrator = worker(app)
    await orchestrator.start()
    jobs = await fill(app, store, 2)
    await calls.started()
    runtime = orchestrator._runtime
    assert runtime is not None
    runtime.lose_lease_of(jobs[1].id, runtime.dispatcher.held[jobs[1].id])
    assert (await ended(app, jobs[0])).attempt == 1
    assert (await app.get(jobs[1].id)).status is Status.RUNNING
