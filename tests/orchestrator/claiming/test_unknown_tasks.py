"""Jobs of tasks that a worker does not know: left for one that does, at no cost to anybody."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

import headrace
from headrace.app import EVENTS, WORKFLOW
from headrace.clock import Clock
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.status import Status
from tests.orchestrator.conftest import Worker, ended, until


def foreign(**fields: object) -> NewJob:
    """A job of a task that another program has."""
    return NewJob(**{"id": new_id(), "task": "theirs", **fields})  # type: ignore[arg-type]


async def left(app: headrace.App) -> bool:
    """Whether the one foreign job that there is has been left for others."""
    [queue] = await app.engine.queues()
    return queue.reserved == {"theirs": 1}


async def test_an_unknown_task_costs_no_attempt(
    app: headrace.App, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def mine() -> int:
        return 1

    jobs = [foreign(max_attempts=1) for _ in range(20)]
    await app.engine.insert(jobs)
    own = await mine.enqueue()
    with caplog.at_level(logging.WARNING, "headrace.worker"):
        await worker(app).run_until_idle()
    assert await app.result(own.id) == 1
    for job in await app.engine.get([each.id for each in jobs]):
        assert (job.status, job.attempt, job.error) == (Status.PENDING, 0, None)
        assert job.log == b""
    told = [each.getMessage() for each in caplog.records if '"theirs"' in each.getMessage()]
    assert len(told) == 1, "once for each task, not for each job"
    assert 'Registered: "mine"' in told[0]


async def test_another_programs_worker_runs_what_this_one_leaves(
    app: headrace.App, url: str, clock: Clock, worker: Worker, tmp_path: Path
) -> None:
    """Both serve all queues, as workers do unless told otherwise."""
    ran: dict[str, list[str]] = {"a": [], "b": []}

    @app.task("mine")
    async def mine(name: str) -> None:
        ran["a"].append(name)

    async with headrace.App(url, clock=clock, artifacts=str(tmp_path / "artifacts")) as other:

        @other.task("theirs")
        async def theirs(name: str) -> None:
            ran["b"].append(name)

        one, two = worker(app, max_workers=2), worker(other, max_workers=2)
        await one.start()
        await two.start()
        jobs = []
        for n in range(40):
            jobs.append(await mine.enqueue(name=f"a{n}"))
            jobs.append(await theirs.enqueue(name=f"b{n}"))
        for job in jobs:
            over = await ended(app, job)
            assert (over.status, over.attempt) == (Status.COMPLETED, 1)
        assert sorted(ran["a"]) == sorted(f"a{n}" for n in range(40))
        assert sorted(ran["b"]) == sorted(f"b{n}" for n in range(40))
        await two.stop()


async def test_a_worker_that_starts_later_takes_what_was_left(
    app: headrace.App, url: str, clock: Clock, worker: Worker, tmp_path: Path
) -> None:
    await app.engine.insert([foreign() for _ in range(30)])
    await worker(app).run_until_idle()
    [queue] = await app.engine.queues()
    assert queue.reserved == {"theirs": 30}
    async with headrace.App(url, clock=clock, artifacts=str(tmp_path / "artifacts")) as other:
        count = 0

        @other.task
        async def theirs() -> None:
            nonlocal count
            count += 1

        await worker(other).run_until_idle()
        assert count == 30


async def test_a_long_backlog_of_foreign_jobs_is_passed(app: headrace.App, worker: Worker) -> None:
    @app.task
    async def mine() -> None: ...

    await app.engine.insert([foreign() for _ in range(1_000)])
    await app.engine.insert([foreign() for _ in range(1_000)])
    own = await mine.enqueue()
    orchestrator = worker(app, max_workers=1)
    await orchestrator.start()
    await ended(app, own)
    # What was in front has been met once, most of it without having been claimed.
    assert orchestrator.telemetry.claimed < 1_000


async def test_a_foreign_job_does_not_wait_behind_a_long_one(
    app: headrace.App, worker: Worker
) -> None:
    """It takes no slot, so it is left at once also while all slots are busy."""
    gate = asyncio.Event()

    @app.task
    async def long() -> None:
        await gate.wait()

    busy = await long.enqueue()
    orchestrator = worker(app, max_workers=2)
    await orchestrator.start()
    await until(lambda: orchestrator.telemetry.claimed == 1)
    await app.engine.insert([foreign()])
    await until(lambda: left(app))
    gate.set()
    await ended(app, busy)


async def test_stopping_gives_foreign_jobs_back(app: headrace.App, worker: Worker) -> None:
    orchestrator = worker(app)
    await orchestrator.start()
    job = foreign()
    await app.engine.insert([job])
    await until(lambda: orchestrator.telemetry.claimed >= 1)
    await orchestrator.stop()
    [left] = await app.engine.get([job.id])
    assert (left.status, left.attempt) == (Status.PENDING, 0)


async def test_why_and_workers_tell_which_tasks_are_known(
    app: headrace.App, worker: Worker
) -> None:
    @app.task
    async def mine() -> None: ...

    job = foreign()
    await app.engine.insert([job])
    await worker(app, name="one").start()
    [known] = await app.engine.workers()
    assert known.tasks is not None
    assert set(known.tasks) == {"mine", WORKFLOW, *EVENTS}
    await until(lambda: left(app))
    assert "No worker that serves queue 'default' knows task 'theirs'" in (await app.why(job.id))[0]


async def test_a_task_that_is_registered_later_gets_the_jobs_that_were_left(
    url: str, clock: Clock, worker: Worker, tmp_path: Path
) -> None:
    artifacts = str(tmp_path / "artifacts")
    async with headrace.App(url, clock=clock, artifacts=artifacts, lease_seconds=3.0) as app:
        job = foreign()
        await app.engine.insert([job])
        orchestrator = worker(app)
        await orchestrator.start()
        await until(lambda: left(app))

        @app.task
        async def theirs() -> str:
            return "late"

        assert (await ended(app, job.id)).result == "late"
        await orchestrator.stop()
