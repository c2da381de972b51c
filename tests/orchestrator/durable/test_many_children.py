"""Many children at once, and parents that wait: what a worker holds of them."""

from __future__ import annotations

import asyncio
import os

import headrace
from headrace.model.job import JobFilter
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, ended, until

CHILDREN = int(os.environ.get("HEADRACE_TEST_CHILDREN", "1000"))


async def test_a_thousand_children_are_fanned_out_and_collected(
    app: headrace.App, worker: Worker
) -> None:
    @app.task
    async def leaf(number: int) -> int:
        return number

    @app.task(timeout=None)
    async def root(ctx: headrace.Context) -> list[int]:
        numbers = await ctx.gather([leaf.job(number) for number in range(CHILDREN)], group="all")
        return [len(numbers), sum(numbers), ctx.token]

    orchestrator = worker(app)
    await orchestrator.start()
    job = await root.enqueue()
    over = await ended(app, job)
    assert over.status is Status.COMPLETED, over.error
    # It was looked after when the last had ended, not after each of them.
    count, total, token = over.result
    assert (count, total) == (CHILDREN, sum(range(CHILDREN)))
    assert token <= 3
    unfinished = (Status.PENDING, Status.RUNNING, Status.SCHEDULED)
    page = await app.list(JobFilter(parent=job.id, statuses=unfinished))
    assert page.jobs == []


async def test_waiting_parents_hold_no_slot(app: headrace.App, worker: Worker) -> None:
    """A worker with one slot runs what a hundred parents wait for."""
    release = asyncio.Event()

    @app.task(queue="leaves")
    async def leaf() -> int:
        await release.wait()
        return 1

    @app.task
    async def root(ctx: headrace.Context) -> int:
        return sum(await ctx.gather([leaf.job()]))

    @app.task
    async def other() -> str:
        return "ran"

    orchestrator = worker(app, queues=["default"], max_workers=1)
    await orchestrator.start()
    jobs = await app.enqueue_many(root.job() for _ in range(100))

    async def all_wait() -> bool:
        return len(await app.engine.suspended()) == len(jobs)

    await until(all_wait)
    assert await app.result((await other.enqueue()).id, timeout=20) == "ran"
    runtime = orchestrator._runtime
    assert runtime is not None
    assert runtime.slots.busy == 0
    assert runtime.dispatcher.held == {}
    assert runtime.dispatcher.idle
    assert runtime.family_updates.affected == {}
    assert runtime.writer.pending == {}
    release.set()
    await worker(app, queues=["leaves"]).start()
    for job in jobs:
        assert (await ended(app, job)).result == 1
