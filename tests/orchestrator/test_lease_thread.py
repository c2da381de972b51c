"""Leases: kept while the loop is blocked, given up by a hanging worker, lost without harm."""

from __future__ import annotations

import asyncio
import errno
import functools
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.outcome import Failure, Retry, Settlement
from headrace.model.status import Status
from headrace.orchestrator.health import is_healthy
from headrace.orchestrator.lease_thread import LeaseThread
from tests.orchestrator.conftest import Worker, ended, until


@pytest.fixture
async def app(url: str, clock: Clock, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App with a short lease."""
    async with headrace.App(
        url, clock=clock, lease_seconds=2, block_seconds=0.1, grace_seconds=0.2
    ) as app:
        yield app
        assert await app.engine.audit() == []


async def test_a_lost_lease_cancels_what_runs_and_the_worker_goes_on(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    started = asyncio.Event()
    saw: list[str] = []

    @app.task
    async def slow(ctx: headrace.Context) -> str:
        if ctx.attempt == 1:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                saw.append(f"cancelled {ctx.cancelled}")
                raise
        return f"attempt {ctx.attempt}"

    orchestrator = worker(app)
    await orchestrator.start()
    first_id, name = orchestrator.worker_id, orchestrator.worker_name
    job = await slow.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    clock.advance(3)  # longer than the lease
    over = await ended(app, job)
    # The sweep gave the job away; the first attempt settled nothing.
    assert (over.status, over.result, over.attempt) == (Status.COMPLETED, "attempt 2", 2)
    [entry] = over.attempts
    assert entry.failure is not None
    assert entry.failure.type == "WorkerLost"
    assert saw == ["cancelled True"]
    assert orchestrator.worker_id != first_id
    assert orchestrator.worker_name == name  # nobody else has taken it
    assert orchestrator.telemetry.leases_lost == 1
    assert orchestrator.telemetry.outcomes()["lost"] == 1


async def test_a_write_of_a_lost_attempt_is_refused_and_ends_it(
    app: headrace.App, worker: Worker
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    raised: list[BaseException] = []

    @app.task
    async def staged(ctx: headrace.Context) -> str:
        if ctx.attempt > 1:
            return "second"
        started.set()
        await go_on.wait()
        try:
            return await ctx.stage("one", one)
        except BaseException as error:
            raised.append(error)
            raise

    async def one() -> str:
        return "never kept"

    orchestrator = worker(app)
    await orchestrator.start()
    job = await staged.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    # Somebody else settles the job, as a sweep would.
    await app.engine.exchange([Settlement(job.id, 1, Retry(Failure("WorkerLost", "lost"), 0))])
    go_on.set()
    over = await ended(app, job)
    assert (over.result, over.attempt) == ("second", 2)
    # The second attempt may end before the first has heard that its write was refused.
    await until(lambda: raised)
    assert [type(error) for error in raised] == [headrace.LeaseLost]
    assert await app.engine.entries(job.id) == []
    await until(lambda: orchestrator.telemetry.outcomes() == {"completed": 1, "lost": 1})


async def test_progress_of_a_lost_attempt_stops_it(app: headrace.App, worker: Worker) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def telling(ctx: headrace.Context) -> str:
        if ctx.attempt > 1:
            return "second"
        started.set()
        await go_on.wait()
        ctx.progress(50)
        await asyncio.Event().wait()
        return "never"

    await worker(app).start()
    job = await telling.enqueue()
    await asyncio.wait_for(started.wait(), 20)
    await app.engine.exchange([Settlement(job.id, 1, Retry(Failure("WorkerLost", "lost"), 0))])
    go_on.set()
    assert (await ended(app, job)).result == "second"


async def test_a_blocked_loop_keeps_its_lease_and_is_reported_with_the_stack(
    app: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def blocking(ctx: headrace.Context) -> int:
        time.sleep(3)  # noqa: ASYNC251 - blocking for longer than the lease is the point
        return ctx.attempt

    orchestrator = worker(app)
    await orchestrator.start()
    first_id = orchestrator.worker_id
    job = await blocking.enqueue()
    over = await ended(app, job)
    assert (over.status, over.result) == (Status.COMPLETED, 1)
    assert orchestrator.worker_id == first_id
    assert orchestrator.telemetry.renewals >= 3
    # Each is counted and said once; a busy machine may have stopped the loop as well.
    lines = [record.getMessage() for record in caplog.records if "blocked for" in record.msg]
    assert orchestrator.telemetry.blocks == len(lines)
    [line] = [each for each in lines if f"job {job.id} (blocking, attempt 1)" in each]
    assert "time.sleep(3)" in line
    await until(lambda: orchestrator.telemetry.block_seconds >= 2.5)


async def test_a_hanging_worker_gives_up_its_lease(
    app: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    hung: list[float] = []

    @app.task(timeout=0.1, retries=1)
    async def hanging(ctx: headrace.Context) -> int:
        if ctx.attempt == 1:
            while not hung:
                time.sleep(0.01)  # noqa: ASYNC251 - blocking is the point
        return ctx.attempt

    orchestrator = worker(app)
    orchestrator.on_hang = lambda: hung.append(time.monotonic())
    await orchestrator.start()
    job = await hanging.enqueue()
    await until(lambda: hung)
    assert "hangs in a job that is past its time" in caplog.text
    # In a process of its own it would have ended; here the loop comes back, and goes on.
    assert (await ended(app, job)).status is Status.COMPLETED
    await until(lambda: orchestrator.healthy)
    assert len(hung) == 1


async def test_two_workers_of_one_name_do_not_fight(
    app: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    first, second = worker(app, name="twin"), worker(app, name="twin")
    await first.start()
    await second.start()
    await until(lambda: first.worker_name != "twin")
    assert second.worker_name == "twin"
    assert "Give each worker a name of its own" in caplog.text
    job = await add.enqueue(1, 2)
    assert await app.result(job.id, timeout=20) == 3
    alive = [seen.name for seen in await app.engine.workers() if seen.alive]
    assert sorted(alive) == sorted([str(first.worker_name), "twin"])


async def test_the_heartbeat_tells_memory_and_load(app: headrace.App, worker: Worker) -> None:
    release = asyncio.Event()

    @app.task
    async def held() -> None:
        await release.wait()

    orchestrator = worker(app)
    await orchestrator.start()
    await held.enqueue()

    async def told() -> bool:
        [seen] = await app.engine.workers()
        return seen.running == 1 and seen.memory_bytes > 1_000_000 and seen.healthy

    await until(told)
    release.set()


async def test_what_never_reached_a_worker_is_given_back_when_it_leaves(
    app: headrace.App, worker: Worker
) -> None:
    @app.task(queue="elsewhere")
    async def unseen() -> None: ...

    leaving = worker(app, queues=["default"])
    await leaving.start()
    job = await unseen.enqueue()
    reply = await app.engine.exchange(
        [], worker_id=leaving.worker_id, queues=["elsewhere"], limit=1
    )
    assert [each.id for each in reply.jobs] == [job.id]
    await leaving.stop()
    found = await app.get(job.id)
    assert (found.status, found.attempt) == (Status.PENDING, 0)


@pytest.mark.parametrize("url", ["redis"], indirect=True)
async def test_what_is_handed_over_at_the_last_moment_is_given_back(
    app: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def late() -> None: ...

    leaving = worker(app)
    await leaving.start()
    await until(lambda: leaving.telemetry.exchanges > 0)
    stop = LeaseThread.stop
    ids: list[str] = []

    async def stop_after_a_job(thread: LeaseThread) -> None:
        ids.append((await late.enqueue()).id)
        await until(lambda: leaving.telemetry.claimed == 1)
        await stop(thread)

    monkeypatch.setattr(LeaseThread, "stop", stop_after_a_job)
    await leaving.stop()
    found = await app.get(ids[0])
    assert (found.status, found.attempt) == (Status.PENDING, 0)


async def test_word_of_a_job_that_was_taken_on_already_comes_late_and_is_ignored(
    app: headrace.App, worker: Worker
) -> None:
    runs: list[str] = []

    @app.task(queue="elsewhere")
    async def once(ctx: headrace.Context) -> None:
        runs.append(ctx.job_id)

    running = worker(app, queues=["default"])
    await running.start()
    job = await once.enqueue()
    reply = await app.engine.exchange(
        [], worker_id=running.worker_id, queues=["elsewhere"], limit=1
    )
    assert running._runtime is not None
    dispatcher, worker_id = running._runtime.dispatcher, running.worker_id
    assert worker_id is not None
    dispatcher.on_jobs_pushed("", [])
    assert (await ended(app, job)).status is Status.COMPLETED
    claimed = running.telemetry.claimed
    dispatcher.on_jobs_pushed(worker_id, reply.jobs)
    assert (runs, running.telemetry.claimed) == ([job.id], claimed)


async def test_a_lease_is_kept_when_memory_and_load_cannot_be_read(
    app: headrace.App, worker: Worker
) -> None:
    class NoDescriptors:
        def memory_info(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    orchestrator = worker(app)
    await orchestrator.start()
    assert orchestrator._runtime is not None
    thread, first_id = orchestrator._runtime.lease_thread, orchestrator.worker_id
    thread._process = NoDescriptors()
    renewals = orchestrator.telemetry.renewals
    await until(lambda: orchestrator.telemetry.renewals >= renewals + 3)
    assert orchestrator.healthy
    assert orchestrator.worker_id == first_id


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_the_lease_thread_outlives_whatever_goes_wrong_in_a_round(
    app: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator = worker(app)
    await orchestrator.start()
    assert orchestrator._runtime is not None
    thread = orchestrator._runtime.lease_thread
    failures: list[str] = []
    for broken, name in ((thread.monitor, "check"), (thread, "_renew"), (thread, "_healthy")):

        def fail(*_: Any, name: str = name) -> None:
            failures.append(name)
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(broken, name, fail)
            await until(functools.partial(failures.__contains__, name))
        orchestrator.telemetry.renewals = 0
        await until(lambda: orchestrator.telemetry.renewals)
    assert orchestrator.healthy


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_worker_is_unhealthy_as_soon_as_its_lease_thread_says_that_it_ends(
    app: headrace.App, worker: Worker
) -> None:
    orchestrator = worker(app)
    await orchestrator.start()
    assert orchestrator.healthy
    assert orchestrator._runtime is not None
    # The thread says so from its last lines, so it may still be seen for a moment.
    orchestrator._runtime.lease_thread._over(SystemExit("the end"))
    assert orchestrator._runtime.lease_thread._thread.is_alive()
    assert not is_healthy(orchestrator._runtime)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_worker_whose_lease_thread_ends_gives_up_loudly(
    app: headrace.App,
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def leave(*_: Any) -> None:
        raise SystemExit("somebody ends threads")

    orchestrator = worker(app)
    await orchestrator.start()
    assert orchestrator._runtime is not None
    monkeypatch.setattr(orchestrator._runtime.lease_thread, "_round", leave)
    with pytest.raises(headrace.WorkerUnhealthy, match="renews the lease ended: SystemExit"):
        await asyncio.wait_for(orchestrator.wait(), 20)
    assert not orchestrator.healthy
    assert "The worker gave up" in caplog.text
    # Nothing is claimed any more: it would be lost.
    assert orchestrator._runtime.dispatcher.draining
