"""Cancel, run again, pause, prune."""

from __future__ import annotations

import asyncio

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.writes import Entry, Note
from headrace.model.ids import new_id
from headrace.model.outcome import Cancelled, Completed, Retry, Settlement
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    fail,
    retry,
    settle,
    status,
    the_job,
)


@pytest.mark.parametrize("delay", [0, 60])
async def test_an_unstarted_job_is_cancelled_at_once(engine: Engine, delay: float) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, delay=delay)
    assert await engine.cancel([job_id], "not needed") == {job_id: True}
    job = await the_job(engine, job_id)
    assert (job.status, job.error) == (Status.CANCELLED, "not needed")
    assert job.completed_at is not None
    assert await claim(engine, worker) == []


async def test_a_running_job_is_asked_to_stop(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await engine.cancel([job_id]) == {job_id: False}
    seen = await the_job(engine, job_id)
    assert (seen.status, seen.cancel_requested) == (Status.RUNNING, True)
    assert await settle(engine, job, Cancelled())
    assert await status(engine, job_id) is Status.CANCELLED


async def test_a_job_asked_to_stop_may_still_complete(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.cancel([job_id])
    assert await complete(engine, job)
    assert await status(engine, job_id) is Status.COMPLETED


async def test_a_job_asked_to_stop_is_never_tried_again(engine: Engine, clock: Clock) -> None:
    """A cancel that meets a retry wins: otherwise it would be forgotten."""
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.cancel([job_id])
    assert await retry(engine, job, 0)
    assert await status(engine, job_id) is Status.CANCELLED
    assert await claim(engine, worker) == []


async def test_finished_and_unknown_jobs_cannot_be_cancelled(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await complete(engine, job)
    assert await engine.cancel([job_id, new_id()]) == {}
    assert await status(engine, job_id) is Status.COMPLETED


async def test_a_cancel_that_races_a_claim_is_never_lost(
    engine: Engine, open_another: Opener
) -> None:
    other = await open_another()
    worker = await a_worker(engine)
    for _ in range(20):
        job_id = await enqueue(engine, lane="l")
        claimed, cancelled = await asyncio.gather(claim(engine, worker), other.cancel([job_id]))
        if claimed:
            assert cancelled == {job_id: False}
            assert (await the_job(engine, job_id)).cancel_requested
            assert await settle(engine, claimed[0], Cancelled())
        else:
            assert cancelled == {job_id: True}
        assert await status(engine, job_id) is Status.CANCELLED


async def test_a_failed_job_runs_again_from_the_first_attempt(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, key="k")
    [job] = await claim(engine, worker)
    await engine.write_progress([Note(job.id, job.token, entries=(Entry("stage", "one", b"1"),))])
    await fail(engine, job)
    assert await engine.rerun([job_id]) == [job_id]
    waiting = await the_job(engine, job_id)
    assert (waiting.status, waiting.attempt, waiting.completed_at) == (Status.PENDING, 0, None)
    [again] = await claim(engine, worker)
    assert (again.id, again.attempt, again.key) == (job_id, 1, "k")
    assert again.token > job.token
    assert [entry.name for entry in await engine.entries(job_id)] == ["one"]
    assert not await complete(engine, job)
    assert await complete(engine, again)
    done = await the_job(engine, job_id)
    assert (done.status, done.error) == (Status.COMPLETED, None)


async def test_a_scheduled_job_can_be_run_now(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, delay=600)
    assert await engine.rerun([job_id]) == [job_id]
    assert [job.id for job in await claim(engine, worker)] == [job_id]


async def test_pending_running_and_unknown_jobs_are_left_alone(engine: Engine) -> None:
    worker = await a_worker(engine)
    running = await enqueue(engine)
    await claim(engine, worker)
    pending = await enqueue(engine)
    assert await engine.rerun([running, pending, new_id()]) == []
    assert await status(engine, running) is Status.RUNNING


async def test_history_is_pruned_by_age(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    ids = await engine.insert([a_job() for _ in range(6)])
    for job in await claim(engine, worker, 3):
        await complete(engine, job)
    clock.advance(100)
    for job in await claim(engine, worker, 2):
        await complete(engine, job)
    assert await engine.prune(older_than=200) == 0
    assert await engine.prune(older_than=50) == 3
    assert len(await engine.get([each.id for each in ids])) == 3


async def test_history_is_pruned_by_count_oldest_first(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    ids = []
    for _ in range(5):
        ids.append(await enqueue(engine))
        [job] = await claim(engine, worker)
        await complete(engine, job)
        clock.advance(1)
    assert await engine.prune(keep=2) == 3
    assert [job.id for job in await engine.get(ids)] == ids[3:]
    assert await engine.prune(keep=2) == 0


async def test_pruning_goes_in_bounded_steps_and_spares_unfinished_jobs(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(30)])
    await engine.exchange(
        [Settlement(j.id, j.token, Completed()) for j in await claim(engine, worker, 25)]
    )
    clock.advance(10_000)
    steps = []
    while removed := await engine.prune(older_than=1, limit=10):
        steps.append(removed)
    assert steps == [10, 10, 5]
    [queue] = await engine.queues()
    assert queue.ready == 5


async def test_pruning_removes_entries(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.write_progress([Note(job.id, job.token, entries=(Entry("stage", "one", b"1"),))])
    await complete(engine, job)
    assert len(await engine.entries(job_id)) == 1
    clock.advance(10)
    await engine.prune(older_than=1)
    assert await engine.entries(job_id) == []
    assert await engine.get([job_id]) == []


async def test_a_lost_job_that_was_cancelled_ends(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    await claim(engine, worker)
    await engine.cancel([job_id])
    clock.advance(60)
    [lost] = await engine.take_lost(10)
    assert lost.job.cancel_requested
    await engine.exchange([Settlement(lost.job.id, lost.job.token, Retry(A_FAILURE, 0))])
    assert await status(engine, job_id) is Status.CANCELLED
