"""A cancelled job tells why: the words of whoever asked for it."""

from __future__ import annotations

import pytest

from headrace.engine.base import Engine
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retry,
    Snoozed,
    TimedOut,
)
from headrace.model.status import Status
from tests.support.verbs import (
    A_FAILURE,
    a_worker,
    claim,
    enqueue,
    retry,
    settle,
    status,
    the_job,
)


async def test_a_cancelled_job_has_a_reason_and_no_error_type(engine: Engine) -> None:
    worker = await a_worker(engine)
    running = await enqueue(engine)
    [job] = await claim(engine, worker)
    pending = await enqueue(engine)
    await engine.cancel([pending, running], "the shop is closed")
    await settle(engine, job, Cancelled())
    for job_id in (pending, running):
        seen = await the_job(engine, job_id)
        assert (seen.status, seen.error_type, seen.error) == (
            Status.CANCELLED,
            None,
            "the shop is closed",
        )


@pytest.mark.parametrize(
    "outcome",
    [Retry(A_FAILURE, 0), Retry(A_FAILURE, 60), Snoozed(60), Released(), Cancelled("generic")],
    ids=repr,
)
async def test_the_reason_of_whoever_asked_counts(engine: Engine, outcome: Outcome) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.cancel([job_id], "not needed")
    assert await settle(engine, job, outcome)
    seen = await the_job(engine, job_id)
    assert (seen.status, seen.error_type, seen.error) == (Status.CANCELLED, None, "not needed")
    assert seen.worker == "worker"
    assert seen.started_at is not None


async def test_the_first_who_asks_gives_the_reason(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.cancel([job_id], "first")
    assert await engine.cancel([job_id], "second") == {job_id: False}
    await settle(engine, job, Cancelled())
    assert (await the_job(engine, job_id)).error == "first"


async def test_an_attempt_that_nobody_asked_to_stop_gives_its_own_reason(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await settle(engine, job, Cancelled("changed my mind"))
    seen = await the_job(engine, job_id)
    assert (seen.error_type, seen.error, seen.cancel_requested) == (None, "changed my mind", False)


@pytest.mark.parametrize("outcome", [Completed(b"1"), Failed(A_FAILURE), TimedOut(A_FAILURE)])
async def test_other_ends_of_a_job_asked_to_stop_keep_what_they_tell(
    engine: Engine, outcome: Outcome
) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await engine.cancel([job_id], "not needed")
    await settle(engine, job, outcome)
    seen = await the_job(engine, job_id)
    expected = (None, None) if isinstance(outcome, Completed) else ("ValueError", "it broke")
    assert (seen.error_type, seen.error) == expected
    assert seen.cancel_requested


async def test_a_cancelled_retry_forgets_its_error_and_its_worker(engine: Engine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    await retry(engine, job, 60)
    await engine.cancel([job_id], "enough")
    seen = await the_job(engine, job_id)
    assert (seen.error_type, seen.error) == (None, "enough")
    assert (seen.worker, seen.started_at, seen.attempt) == (None, None, 1)


async def test_only_a_job_that_ran_was_asked_to_stop(engine: Engine) -> None:
    worker = await a_worker(engine)
    running = await enqueue(engine)
    [job] = await claim(engine, worker)
    pending = await enqueue(engine)
    await engine.cancel([running, pending])
    await settle(engine, job, Cancelled())
    assert (await the_job(engine, running)).cancel_requested
    assert not (await the_job(engine, pending)).cancel_requested
    await engine.rerun([running, pending])
    assert not (await the_job(engine, running)).cancel_requested
    [job, _] = await claim(engine, worker, 2)
    assert await retry(engine, job, 0)
    assert await status(engine, running) is Status.PENDING
