"""Chunks that fill: when they start, what they may contain, and who does not have to wait."""

from __future__ import annotations

import asyncio
import threading

import headrace
from headrace.clock import Clock
from headrace.model.status import Status
from tests.orchestrator.chunk_support import Calls, Row, fill, waiting
from tests.orchestrator.conftest import LIMIT, Worker, ended, until


async def test_a_full_chunk_does_not_wait(app: headrace.App, worker: Worker, calls: Calls) -> None:
    @app.task(chunk=25, chunk_wait=600)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    await worker(app, max_workers=2).start()
    jobs = await fill(app, store, 50)
    for job in jobs:
        await ended(app, job)
    assert [len(each) for each in calls.seen] == [25, 25]
    assert sorted(number for each in calls.seen for number in each) == list(range(50))


async def test_a_chunk_larger_than_what_is_claimed_ahead_fills(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=200, chunk_wait=600)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    jobs = await fill(app, store, 400)
    for job in jobs:
        await ended(app, job)
    assert [len(each) for each in calls.seen] == [200, 200]
    # A few claims for a chunk, not one for each job.
    assert orchestrator.telemetry.exchanges < 60


async def test_a_chunk_that_is_not_full_starts_when_its_time_is_up(
    app: headrace.App, worker: Worker, clock: Clock, calls: Calls
) -> None:
    @app.task(chunk=50, chunk_wait=10)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    orchestrator = worker(app)
    await orchestrator.start()
    jobs = await fill(app, store, 3)
    chunks = await waiting(orchestrator, 3)
    assert not chunks.ready
    clock.advance(9)
    assert (await app.get(jobs[0].id)).status is Status.RUNNING
    assert calls.seen == []
    clock.advance(1.5)
    for job in jobs:
        assert (await ended(app, job)).attempt == 1
    assert calls.seen == [[0, 1, 2]]


async def test_a_chunk_that_waits_takes_no_slot(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=50, chunk_wait=600)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    @app.task
    async def alone(number: int) -> int:
        return number

    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    await fill(app, store, 2)
    await waiting(orchestrator, 2)
    for number in range(20):
        assert (await ended(app, await alone.enqueue(number))).result == number
    assert calls.seen == []


async def test_jobs_of_other_tasks_are_not_kept_waiting_by_chunks_and_neither_way(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    """Both in one queue, in turns, with a thread that goes from job to job by itself."""

    @app.task(chunk=10, chunk_wait=0.05)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    @app.task
    def plain(number: int) -> None: ...

    mixed = [task.job(number=number) for number in range(300) for task in (store, plain)]
    jobs = await app.enqueue_many(mixed)
    await worker(app, max_workers=1).start()
    for job in jobs:
        over = await ended(app, job)
        assert (over.status, over.attempt) == (Status.COMPLETED, 1)
    assert sorted(number for each in calls.seen for number in each) == list(range(300))
    assert len(calls.seen) <= 100


async def test_a_chunk_gets_the_next_slot_of_a_thread_that_goes_from_job_to_job(
    local: headrace.App, worker: Worker
) -> None:
    order: list[str] = []
    started, release = threading.Event(), threading.Event()

    @local.task
    def plain(number: int) -> None:
        order.append("plain")

    @local.task
    def blocks() -> None:
        started.set()
        release.wait(LIMIT)

    @local.task(chunk=2, chunk_wait=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        order.append("chunk")

    orchestrator = worker(local, max_workers=1)
    await orchestrator.start()
    # Short ones first, so that it claims ahead.
    await fill(local, plain, 200)
    await orchestrator.run_until_idle()
    order.clear()
    await blocks.enqueue()
    await until(started.is_set)
    claimed = orchestrator.telemetry.claimed
    rows = [store.job(number=number) for number in range(2)]
    await local.enqueue_many([*rows, *(plain.job(number=number) for number in range(20))])
    await until(lambda: orchestrator.telemetry.claimed >= claimed + 22)
    release.set()
    await until(lambda: len(order) >= 21)
    assert order[0] == "chunk"


async def test_what_fills_no_chunk_is_left_to_other_workers(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    """A chunk that lacks 499 jobs must not take hundreds of others that there is no slot for."""
    release = asyncio.Event()

    @app.task(chunk=500, chunk_wait=600)
    async def store(chunk: headrace.Chunk[Row]) -> None: ...

    @app.task
    async def long(number: int) -> None:
        await release.wait()

    orchestrator = worker(app, max_workers=2)
    await orchestrator.start()
    await store.enqueue(number=0)
    await waiting(orchestrator, 1)
    jobs = await app.enqueue_many(long.job(number=number) for number in range(2_000))
    await until(lambda: orchestrator.telemetry.claimed > 2)

    async def settled_down() -> bool:
        view = next(each for each in await app.engine.queues() if each.name == "default")
        return bool(view.running <= 10)

    # Those of the first claim go back after a second, and far fewer are taken from then on.
    await until(settled_down)
    release.set()
    await until(lambda: orchestrator.telemetry.claimed >= len(jobs))


async def test_a_lane_bounds_its_jobs_in_a_chunk(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    shops: list[list[str]] = []

    @app.task(chunk=10, chunk_wait=0.1, lane=headrace.Lane("shop:{shop}", width=2))
    async def store(chunk: headrace.Chunk[Row]) -> None:
        shops.append([job.args.shop for job in chunk])
        assert {job.lane for job in chunk} == {f"shop:{job.args.shop}" for job in chunk}

    rows = [store.job(number=n, shop=shop) for n in range(4) for shop in ("a", "b")]
    await app.enqueue_many(rows)
    await worker(app).run_until_idle()
    assert sum(map(len, shops)) == 8
    assert all(each.count(shop) <= 2 for each in shops for shop in "ab")


async def test_a_chunk_has_what_it_was_asked_for_in_common(
    app: headrace.App, worker: Worker
) -> None:
    seen: list[tuple[str, list[str]]] = []

    @app.task("by_shop", chunk=10, chunk_by="shop")
    async def by_shop(chunk: headrace.Chunk[Row]) -> None:
        seen.append((chunk.task, [job.args.shop for job in chunk]))

    by_lane = app.task(
        "by_lane", chunk=10, chunk_by="lane", lane=headrace.Lane("{shop}", width=10)
    )(by_shop.function)
    for task in (by_shop, by_lane):
        await app.enqueue_many(
            task.job(number=n, shop=shop) for n in range(4) for shop in ("a", "b")
        )
    await worker(app).run_until_idle()
    assert sorted(seen) == [
        (task, [shop] * 4) for task in ("by_lane", "by_shop") for shop in ("a", "b")
    ]


async def test_those_of_higher_priority_come_first(app: headrace.App, worker: Worker) -> None:
    seen: list[int] = []

    @app.task(chunk=2)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        seen.extend(job.args.number for job in chunk)

    for number, priority in enumerate((0, 5, -5, 9)):
        await store.options(priority=priority).enqueue(number=number)
    await worker(app, max_workers=1).run_until_idle()
    assert seen == [3, 1, 0, 2]


async def test_running_until_idle_does_not_wait_for_more(
    app: headrace.App, worker: Worker, calls: Calls
) -> None:
    @app.task(chunk=50, chunk_wait=600)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        calls.note(chunk)

    await fill(app, store, 120)
    await asyncio.wait_for(worker(app).run_until_idle(), LIMIT)
    assert sorted(len(each) for each in calls.seen) == [20, 50, 50]
