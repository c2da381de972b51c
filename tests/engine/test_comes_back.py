"""What a job shows that comes back: after a retry, a release, a snooze, a run by hand."""

from __future__ import annotations

import msgspec
import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.writes import Entry, Note
from headrace.model.outcome import Completed, Outcome, Released, Retry, Settlement, Snoozed
from headrace.model.status import Status
from tests.support.verbs import (
    A_FAILURE,
    a_worker,
    claim,
    enqueue,
    fail,
    retry,
    settle,
    the_job,
)


@pytest.mark.parametrize("lane", [None, "l"])
@pytest.mark.parametrize(
    "outcome",
    [Retry(A_FAILURE, 0), Retry(A_FAILURE, 60), Snoozed(0), Snoozed(60), Released()],
    ids=repr,
)
async def test_a_job_that_is_not_running_has_no_worker_and_no_start(
    engine: Engine, clock: Clock, outcome: Outcome, lane: str | None
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, lane=lane)
    [job] = await claim(engine, worker)
    running = await the_job(engine, job_id)
    assert running.worker == "worker"
    assert running.started_at is not None
    await settle(engine, job, outcome)
    back = await the_job(engine, job_id)
    assert (back.worker, back.started_at, back.completed_at) == (None, None, None)
    clock.advance(61)
    await engine.promote_due(10)
    back = await the_job(engine, job_id)
    assert (back.status, back.worker, back.started_at) == (Status.PENDING, None, None)
    [job] = await claim(engine, worker)
    again = await the_job(engine, job_id)
    assert again.worker == "worker"
    assert again.started_at is not None
    assert again.started_at > running.started_at


async def test_a_finished_job_keeps_its_last_worker_and_start(engine: Engine, clock: Clock) -> None:
    job_id = await enqueue(engine)
    [job] = await claim(engine, await a_worker(engine, "first"))
    await retry(engine, job, 0)
    clock.advance(10)
    [job] = await claim(engine, await a_worker(engine, "second"))
    running = await the_job(engine, job_id)
    clock.advance(5)
    await fail(engine, job)
    seen = await the_job(engine, job_id)
    assert (seen.worker, seen.started_at) == ("second", running.started_at)
    assert seen.completed_at is not None
    assert seen.started_at is not None
    assert seen.completed_at > seen.started_at > seen.created_at


@pytest.mark.parametrize("outcome", [Retry(A_FAILURE, 60), Snoozed(60)], ids=repr)
async def test_a_job_that_is_put_off_is_due_at_its_new_time(
    engine: Engine, clock: Clock, outcome: Outcome
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    before = await the_job(engine, job_id)
    [job] = await claim(engine, worker)
    clock.advance(100)
    await settle(engine, job, outcome)
    after = await the_job(engine, job_id)
    assert 159 < (after.run_at - before.run_at).total_seconds() < 200
    assert after.created_at == before.created_at


async def test_a_job_that_is_given_back_is_due_as_before(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    before = await the_job(engine, job_id)
    clock.advance(100)
    [job] = await claim(engine, worker)
    clock.advance(100)
    await settle(engine, job, Released())
    assert await the_job(engine, job_id) == msgspec.structs.replace(before, token=job.token)


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_a_job_that_is_run_again_shows_nothing_of_before(
    engine: Engine, clock: Clock, end: str
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    entry = Entry("stage", "crawling", b"1")
    await engine.write_progress([Note(job.id, job.token, "crawling", 40.0, "page 1", (entry,))])
    log = b'{"attempt":1,"token":1,"outcome":"x","worker":"w","ended_at":"2026-01-01T00:00:00Z"}'
    if end == "cancelled":
        await engine.cancel([job_id], "enough")
    outcome = Completed(b'"done"') if end == "completed" else Retry(A_FAILURE, 0)
    await engine.exchange([Settlement(job.id, job.token, outcome, log)])
    if end == "failed":
        [job] = await claim(engine, worker)
        await fail(engine, job)
    before = await the_job(engine, job_id)
    assert before.status.value == end
    clock.advance(10)
    assert await engine.rerun([job_id]) == [job_id]
    again = await the_job(engine, job_id)
    assert (again.status, again.attempt, again.token) == (Status.PENDING, 0, before.token)
    assert (again.progress, again.stage, again.message) == (0.0, None, None)
    assert (again.error_type, again.error, again.result_json) == (None, None, None)
    assert (again.worker, again.started_at, again.completed_at) == (None, None, None)
    assert again.created_at == before.created_at
    assert again.run_at > before.run_at
    # What belongs to the job and not to its last attempt is kept.
    assert [each.outcome for each in again.attempts] == ["x"]
    assert [each.name for each in await engine.entries(job_id)] == ["crawling"]


async def test_a_scheduled_job_that_is_run_now_only_becomes_due(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.write_progress([Note(job.id, job.token, "crawling", 40.0, "page 1")])
    await retry(engine, job, 600)
    clock.advance(10)
    await engine.rerun([job_id])
    seen = await the_job(engine, job_id)
    assert (seen.status, seen.attempt) == (Status.PENDING, 1)
    assert (seen.progress, seen.stage, seen.message) == (40.0, "crawling", "page 1")
    assert (seen.error_type, seen.error) == ("ValueError", "it broke")
    assert abs(seen.run_at.timestamp() - clock.now()) < 5
