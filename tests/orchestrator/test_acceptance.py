"""What the document ingestion team asked for, on every engine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import headrace
from headrace.clock import Clock
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, became, ended, until


async def test_the_dispatcher_runs_after_start_and_is_cancelled_by_stop(
    app: headrace.App, worker: Worker
) -> None:
    orchestrator = worker(app)
    assert (orchestrator.max_workers, orchestrator.internal_queue.maxsize) == (10, 100)
    await orchestrator.start()
    assert orchestrator.running
    assert orchestrator.healthy
    assert orchestrator.dispatcher_task is not None
    assert not orchestrator.dispatcher_task.done()
    assert len(orchestrator.workers) == 10
    [seen] = await app.engine.workers()
    assert (seen.name, seen.alive, seen.slots) == (orchestrator.worker_name, True, 10)
    await orchestrator.stop()
    assert repr(orchestrator) == "<JobOrchestrator stopped max_workers=10>"
    assert orchestrator.dispatcher_task.cancelled()
    assert orchestrator.workers == []
    assert not any(seen.alive for seen in await app.engine.workers())


async def test_a_stopped_worker_can_start_again(app: headrace.App, worker: Worker) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    orchestrator = worker(app)
    for number in range(2):
        await orchestrator.start()
        job = await add.enqueue(number, 1)
        assert await app.result(job.id, timeout=20) == number + 1
        await orchestrator.stop()


async def test_a_hundred_jobs_at_once_complete(app: headrace.App, worker: Worker) -> None:
    together = asyncio.Barrier(100)

    @app.task
    async def meet(number: int) -> int:
        await together.wait()
        return number

    orchestrator = worker(app, max_workers=100)
    await orchestrator.start()
    jobs = await app.enqueue_many(meet.job(number) for number in range(100))
    # None can end before all have begun, so all hundred run at the same time.
    assert [(await ended(app, job)).result for job in jobs] == list(range(100))


async def test_slots_take_jobs_from_the_internal_queue_only(
    app: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    @app.task
    async def note(ctx: headrace.Context) -> None:
        ran.append(ctx.job_id)

    orchestrator = worker(app)
    await orchestrator.start()
    taken: list[str] = []
    get = orchestrator.internal_queue._get

    def spying() -> Any:
        job = get()
        taken.append(job.id)
        return job

    monkeypatch.setattr(orchestrator.internal_queue, "_get", spying)
    jobs = await app.enqueue_many(note.job() for _ in range(30))
    for job in jobs:
        await ended(app, job)
    assert sorted(ran) == sorted(taken) == sorted(job.id for job in jobs)


async def test_a_parser_error_is_not_retried_and_a_network_error_is(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    @app.task
    async def parse() -> None:
        raise headrace.ParserError("page 3 is no PDF")

    @app.task
    async def fetch(ctx: headrace.Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError("reset by peer")
        return ctx.attempt

    orchestrator = worker(app)
    broken, shaky = await parse.enqueue(), await fetch.enqueue()
    await orchestrator.run_until_idle()
    failed = await app.get(broken.id)
    assert (failed.status, failed.attempt) == (Status.FAILED, 1)
    assert (failed.error_type, failed.error) == ("ParserError", "page 3 is no PDF")
    assert failed.completed_at is not None
    assert (await app.get(shaky.id)).status is Status.SCHEDULED
    clock.advance(5)
    await orchestrator.run_until_idle()
    assert (await app.get(shaky.id)).result == 2


async def test_retries_wait_5_10_and_20_seconds(
    app: headrace.App, worker: Worker, clock: Clock
) -> None:
    starts: list[int] = []

    @app.task
    async def broken(ctx: headrace.Context) -> None:
        starts.append(ctx.attempt)
        raise OSError(f"attempt {ctx.attempt}")

    orchestrator = worker(app)
    await orchestrator.start()
    job = await broken.enqueue()
    for attempt, delay in enumerate((5, 10, 20), start=1):
        await until(lambda: len(starts) == attempt)  # noqa: B023 - called in this round only
        waiting = await became(app, job, Status.SCHEDULED)
        pause = waiting.run_at - waiting.attempts[-1].ended_at
        assert delay - 0.1 <= pause.total_seconds() < delay + 3
        clock.advance(delay)
        await orchestrator.run_until_idle()
    over = await ended(app, job)
    assert (over.status, over.attempt, over.error) == (Status.FAILED, 4, "attempt 4")
    assert [entry.outcome for entry in over.attempts] == ["retry"] * 3 + ["failed"]
    assert all(entry.worker == orchestrator.worker_name for entry in over.attempts)
    assert "raise OSError" in (over.attempts[0].failure.traceback or "")  # type: ignore[union-attr]
