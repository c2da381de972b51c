"""Middleware around the jobs of a chunk: each has layers of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import headrace
from headrace.model.status import Status
from tests.orchestrator.chunk_support import Row, fill, statuses
from tests.orchestrator.conftest import LIMIT, Worker


async def test_middleware_is_around_each_job(app: headrace.App, worker: Worker) -> None:
    seen: dict[int, str] = {}
    handled: list[list[int]] = []

    async def layer(call_next: Any, job: Any, ctx: headrace.Context) -> Any:
        number = (await app.get(ctx.job_id)).args["number"]
        await asyncio.sleep(0.02 * number)  # not all come at once
        if number == 3:
            return "not needed"
        if number == 4:
            raise headrace.NotRetryable("refused")
        try:
            seen[number] = f"returned {(value := await call_next())}"
        except ValueError as error:
            seen[number] = f"raised {error}"
            raise
        return value if number else "changed"

    @app.task(chunk=5, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> list[Any]:
        handled.append([job.args.number for job in chunk])
        chunk[1].complete("early")
        return [ValueError("two") if job.args.number == 2 else job.args.number for job in chunk]

    jobs = await fill(app, store, 5)
    await asyncio.wait_for(worker(app, middleware=[layer]).run_until_idle(), LIMIT)
    assert handled == [[0, 1, 2]]
    assert seen == {0: "returned 0", 1: "returned early", 2: "raised two"}
    found = [await app.get(job.id) for job in jobs]
    assert [job.result for job in found] == ["changed", "early", None, "not needed", None]
    assert [job.error for job in found] == [None, None, "two", None, "refused"]


async def test_middleware_cannot_call_a_chunk_again_for_one_job(
    local: headrace.App, worker: Worker
) -> None:
    async def again(call_next: Any, job: Any, ctx: headrace.Context) -> Any:
        try:
            return await call_next()
        except ValueError:
            return await call_next()

    @local.task(chunk=2)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        chunk[0].fail(ValueError("once more"))

    jobs = await fill(local, store, 2)
    await asyncio.wait_for(worker(local, middleware=[again]).run_until_idle(), LIMIT)
    assert await statuses(local, jobs) == [Status.FAILED, Status.COMPLETED]
    assert "call_next was called twice" in str((await local.get(jobs[0].id)).error)


async def test_a_chunk_with_middleware_runs_out_of_time(
    local: headrace.App, worker: Worker
) -> None:
    ends: list[str] = []

    async def layer(call_next: Any, job: Any, ctx: headrace.Context) -> Any:
        try:
            return await call_next()
        finally:
            ends.append(ctx.job_id)

    @local.task(chunk=3, timeout=0.05, retries=0)
    async def store(chunk: headrace.Chunk[Row]) -> None:
        chunk[0].complete()
        await asyncio.Event().wait()

    jobs = await fill(local, store, 3)
    await asyncio.wait_for(worker(local, middleware=[layer]).run_until_idle(), LIMIT)
    assert await statuses(local, jobs) == [Status.COMPLETED, Status.TIMEOUT, Status.TIMEOUT]
    assert sorted(ends) == sorted(job.id for job in jobs)
