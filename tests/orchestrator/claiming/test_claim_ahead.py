"""How far ahead a worker claims, and running until nothing is left."""

from __future__ import annotations

import asyncio

import pytest

import headrace
from headrace.clock import Clock
from headrace.errors import InvalidName, InvalidSetting
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, became, ended, until


async def test_long_jobs_are_not_held_while_another_worker_is_idle(
    app: headrace.App, worker: Worker
) -> None:
    release = asyncio.Event()
    running: list[str] = []

    @app.task
    async def long(ctx: headrace.Context) -> None:
        running.append(ctx.job_id)
        await release.wait()

    first, second = worker(app, max_workers=2), worker(app, max_workers=2)
    await first.start()
    await second.start()
    jobs = await app.enqueue_many(long.job() for _ in range(4))
    await until(lambda: len(running) == 4)
    assert first.internal_queue.empty()
    assert second.internal_queue.empty()
    release.set()
    for job in jobs:
        await ended(app, job)


async def test_short_jobs_that_wait_behind_long_ones_are_given_back(
    app: headrace.App, worker: Worker
) -> None:
    release, started = asyncio.Event(), asyncio.Event()

    @app.task
    async def short() -> None: ...

    @app.task
    async def long() -> None:
        started.set()
        await release.wait()

    busy = worker(app, max_workers=1)
    await busy.start()
    await app.enqueue_many(short.job() for _ in range(200))
    await busy.run_until_idle()
    jobs = await app.enqueue_many([long.job(), *(short.job() for _ in range(20))])
    await asyncio.wait_for(started.wait(), 20)
    await until(lambda: not busy.internal_queue.empty())
    other = worker(app)
    await other.start()
    for job in jobs[1:]:
        over = await ended(app, job)
        assert (over.status, over.attempt) == (Status.COMPLETED, 1)
    assert busy.telemetry.released > 0
    assert (await app.get(jobs[0].id)).status is Status.RUNNING
    release.set()
    await ended(app, jobs[0])


async def test_run_until_idle_runs_what_jobs_enqueue_and_retries_at_once(
    app: headrace.App, worker: Worker
) -> None:
    done: list[int] = []

    @app.task(retry=headrace.RetryPolicy(base=0))
    async def countdown(ctx: headrace.Context, number: int) -> None:
        if ctx.attempt == 1:
            raise OSError("at once again")
        done.append(number)
        if number:
            await countdown.enqueue(number - 1)

    await countdown.enqueue(5)
    orchestrator = worker(app)
    await orchestrator.run_until_idle()
    assert done == [5, 4, 3, 2, 1, 0]
    assert not orchestrator.running
    await orchestrator.start()
    await countdown.enqueue(2)
    await orchestrator.run_until_idle()
    assert done[6:] == [2, 1, 0]
    assert orchestrator.running


async def test_run_until_idle_leaves_alone_what_may_not_run_now(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    @app.task(lane="one", retry=headrace.RetryPolicy(base=600))
    async def fails_first(ctx: headrace.Context) -> None:
        if ctx.attempt == 1:
            raise OSError("later")

    @app.task
    async def noop() -> None: ...

    head, behind = await fails_first.enqueue(), await fails_first.enqueue()
    later = await noop.options(delay=600).enqueue()
    await app.engine.pause("held", True)
    paused = await noop.options(queue="held").enqueue()
    await worker(app).run_until_idle()
    assert (await app.get(head.id)).status is Status.SCHEDULED
    assert (await app.get(behind.id)).status is Status.PENDING
    assert (await app.get(later.id)).status is Status.SCHEDULED
    assert (await app.get(paused.id)).status is Status.PENDING


async def test_a_lane_runs_one_job_at_a_time_in_order(app: headrace.App, worker: Worker) -> None:
    running, most = 0, 0
    order: list[int] = []

    @app.task(lane="platform:{platform}")
    async def scan(platform: str, number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(number)
        await asyncio.sleep(0)
        running -= 1

    await app.enqueue_many(scan.job("a", number) for number in range(50))
    await worker(app).run_until_idle()
    assert most == 1
    assert order == list(range(50))


async def test_a_worker_serves_its_queues_only(app: headrace.App, worker: Worker) -> None:
    @app.task
    async def noop() -> None: ...

    mine = await noop.options(queue="mine").enqueue()
    other = await noop.options(queue="other").enqueue()
    orchestrator = worker(app, queues=["mine", "mine"])
    assert orchestrator.queues == ("mine",)
    await orchestrator.run_until_idle()
    assert (await app.get(mine.id)).status is Status.COMPLETED
    assert (await app.get(other.id)).status is Status.PENDING


async def test_an_idle_worker_starts_a_job_soon(app: headrace.App, worker: Worker) -> None:
    loop = asyncio.get_running_loop()
    started: list[float] = []

    @app.task
    async def noop() -> None:
        started.append(loop.time())

    await worker(app).start()
    delays = []
    for _ in range(10):
        started.clear()
        asked = loop.time()
        await noop.enqueue()
        await until(lambda: started)
        delays.append(started[0] - asked)
    assert sorted(delays)[5] < 0.25, delays


async def test_a_delayed_job_starts_when_it_is_due(app: headrace.App, worker: Worker) -> None:
    @app.task
    async def noop() -> None: ...

    await worker(app).start()
    job = await noop.options(delay=0.1).enqueue()
    over = await became(app, job, Status.COMPLETED)
    assert over.started_at is not None
    assert over.started_at >= over.run_at


async def test_two_workers_share_a_thousand_jobs_and_run_each_once(
    app: headrace.App, worker: Worker
) -> None:
    runs: dict[str, int] = {}

    @app.task
    async def count(ctx: headrace.Context) -> None:
        runs[ctx.job_id] = runs.get(ctx.job_id, 0) + 1
        await asyncio.sleep(0)

    jobs = await app.enqueue_many(count.job() for _ in range(1_000))
    first, second = worker(app), worker(app)
    await first.start()
    await second.start()
    await first.run_until_idle()
    await second.run_until_idle()
    assert {job.id for job in jobs} == runs.keys()
    assert set(runs.values()) == {1}


def test_settings_are_checked() -> None:
    app = headrace.App("sqlite:///unused.db")
    with pytest.raises(InvalidSetting, match="max_workers must be at least 1, got 0"):
        headrace.JobOrchestrator(app, max_workers=0)
    with pytest.raises(InvalidName, match="queue name 'no good'"):
        headrace.JobOrchestrator(app, queues=["no good"])


def test_one_orchestrator_serves_several_loops_in_turn(here: str) -> None:
    app = headrace.App(here)

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    orchestrator = headrace.JobOrchestrator(app)

    async def one(number: int) -> object:
        try:
            job = await add.enqueue(number, 1)
            await orchestrator.run_until_idle()
            return (await app.get(job.id)).result
        finally:
            await app.close()

    assert [asyncio.run(one(number)) for number in range(3)] == [1, 2, 3]


def test_a_program_that_forgets_to_stop_ends_all_the_same(here: str) -> None:
    app = headrace.App(here)
    started: list[int] = []

    @app.task
    async def held() -> None:
        started.append(1)
        await asyncio.Event().wait()

    async def forgetful() -> None:
        await headrace.JobOrchestrator(app).start()
        await held.enqueue()
        await until(lambda: started)
        await app.close()

    asyncio.run(forgetful())
