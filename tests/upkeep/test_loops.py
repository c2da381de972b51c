"""The loops that keep a store moving, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.artifacts import open_store
from headrace.clock import Clock
from headrace.config import Settings
from headrace.engine.base import Engine
from headrace.model.job import JobFilter
from headrace.model.status import Status
from headrace.upkeep import DueJobs, Prune, Sweep, job_loops, loops
from tests.support.verbs import LEASE, a_job, a_worker, claim, complete, enqueue, status, the_job


async def test_due_moves_everything_that_is_due_and_rests_until_the_next(
    engine: Engine, clock: Clock
) -> None:
    due = DueJobs(engine=engine)
    assert await due.tick() == 1.0
    await engine.insert([a_job(delay=10) for _ in range(1_200)])
    await engine.insert([a_job(delay=10.5), a_job(delay=1_000)])
    assert await due.tick() == 1.0
    clock.advance(10.3)
    assert 0 < await due.tick() <= 0.5
    ready = [view.ready for view in await engine.queues()]
    assert ready == [1_200]


async def test_sweep_gives_jobs_of_lost_workers_to_others(
    engine: Engine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    sweep = Sweep(engine=engine, clock=clock, lease_seconds=LEASE)
    gone = await a_worker(engine, "gone")
    ids = {
        "again": await enqueue(engine),
        "last": await enqueue(engine, max_attempts=1),
        "never": await enqueue(engine, on_crash="fail"),
        "slow": await enqueue(engine, timeout=5, max_attempts=1),
        "unwanted": await enqueue(engine),
    }
    assert len(await claim(engine, gone, 10)) == 5
    await engine.cancel([ids["unwanted"]])
    assert 0 < await sweep.tick() <= 6
    assert await status(engine, ids["again"]) is Status.RUNNING
    clock.advance(LEASE + 1)
    await sweep.tick()
    assert {name: await status(engine, job_id) for name, job_id in ids.items()} == {
        "again": Status.PENDING,
        "last": Status.FAILED,
        "never": Status.FAILED,
        "slow": Status.TIMEOUT,
        "unwanted": Status.CANCELLED,
    }
    lines = [record.getMessage() for record in caplog.records]
    told = {
        name: next(line for line in lines if job_id in line).rpartition("): ")[2]
        for name, job_id in ids.items()
    }
    assert told == {
        "again": "it is tried again",
        "last": "it has failed",
        "never": "it has failed",
        "slow": "it is out of time",
        "unwanted": "it is cancelled",
    }
    set_aside = await the_job(engine, ids["last"])
    assert set_aside.error_type == "WorkerLost"
    [entry] = set_aside.attempts
    assert (entry.worker, entry.outcome) == ("gone", "failed")
    assert (await the_job(engine, ids["never"])).error_type == "interrupted"


async def test_a_job_that_kills_its_workers_is_set_aside(engine: Engine, clock: Clock) -> None:
    sweep = Sweep(engine=engine, clock=clock, lease_seconds=LEASE)
    job_id = await enqueue(engine, max_attempts=3)
    for attempt in range(1, 4):
        [job] = await claim(engine, await a_worker(engine, f"victim-{attempt}"))
        assert job.attempt == attempt
        clock.advance(LEASE + 1)
        await sweep.tick()
    over = await the_job(engine, job_id)
    assert over.status is Status.FAILED
    assert [entry.worker for entry in over.attempts] == ["victim-1", "victim-2", "victim-3"]


async def test_prune_works_in_bounded_steps(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_loops, "PRUNE_BATCH", 10)
    loop = Prune(engine=engine, history_seconds=100, history_count=None)
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(25)])
    for job in await claim(engine, worker, 25):
        await complete(engine, job)
    kept = await enqueue(engine)
    assert await loop.tick() > 30
    clock.advance(101)
    assert await loop.tick() < 1
    assert await loop.tick() < 1
    assert await loop.tick() > 30
    page = await engine.list_jobs(JobFilter(), limit=100)
    assert [job.id for job in page.jobs] == [kept]


async def test_prune_keeps_a_number_of_finished_jobs(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(8)])
    for job in await claim(engine, worker, 8):
        await complete(engine, job)
    await Prune(engine=engine, history_seconds=1e6, history_count=3).tick()
    assert len((await engine.list_jobs(JobFilter(), limit=100)).jobs) == 3


async def test_there_is_one_loop_of_each(engine: Engine, clock: Clock, tmp_path: Path) -> None:
    made = loops(engine, Settings(), clock, open_store(tmp_path))
    assert [loop.name for loop in made] == [
        "due",
        "expired",
        "sweep",
        "wake",
        "replaced",
        "pauses",
        "prune",
        "files",
    ]
