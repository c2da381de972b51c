"""Values that nobody should send: kept as well as can be, and never a harm to others."""

from __future__ import annotations

import math

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.job import JobFilter
from headrace.model.note import Note
from headrace.model.outcome import Completed, Retry, Settlement, Snoozed
from headrace.model.status import Status
from tests.support.verbs import (
    A_FAILURE,
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    settle,
    status,
    the_job,
)


@pytest.mark.parametrize("delay", [math.nan, -1.0, -math.inf])
async def test_a_delay_that_is_none_is_over_at_once(engine: Engine, delay: float) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    answer = await engine.exchange(
        [
            Settlement(one.id, one.token, Retry(A_FAILURE, delay)),
            Settlement(two.id, two.token, Snoozed(delay)),
        ]
    )
    assert answer.refused == ()
    assert {job.id for job in await claim(engine, worker, 5)} == {one.id, two.id}


async def test_a_delay_without_end_is_a_very_long_one(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    [job] = await claim(engine, worker)
    assert await settle(engine, job, Retry(A_FAILURE, math.inf))
    clock.advance(365 * 86_400)
    await engine.due(10)
    assert await status(engine, job_id) is Status.SCHEDULED
    await engine.list_jobs(JobFilter(statuses=(Status.SCHEDULED,)))


@pytest.mark.parametrize("result", [b"\xff", b"\x00", b'"\xed\xa0\x80"'])
async def test_a_result_is_kept_byte_by_byte(engine: Engine, result: bytes) -> None:
    """What is no JSON is the caller's mistake, but no reason to lose that the job is done."""
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    answer = await engine.exchange(
        [
            Settlement(one.id, one.token, Completed(result)),
            Settlement(two.id, two.token, Completed(b"2")),
        ]
    )
    assert answer.refused == ()
    seen = await engine.get([one.id, two.id])
    assert [job.status for job in seen] == [Status.COMPLETED, Status.COMPLETED]
    assert [job.result_json for job in seen] == [result, b"2"]


@pytest.mark.parametrize("progress", [-5.0, 250.0, 1e300, math.inf, -math.inf, math.nan])
async def test_an_odd_progress_does_not_disturb_the_others(engine: Engine, progress: float) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(), a_job()])
    one, two = await claim(engine, worker, 2)
    await engine.note([Note(one.id, one.token, progress=7.0)])
    assert (
        await engine.note(
            [Note(one.id, one.token, "s", progress, "m"), Note(two.id, two.token, progress=9.0)]
        )
        == ()
    )
    seen = await the_job(engine, one.id)
    # Told as it is; what is not a number is not told.
    assert seen.progress == (7.0 if math.isnan(progress) else progress)
    assert (seen.stage, seen.message) == ("s", "m")
    assert (await the_job(engine, two.id)).progress == 9.0
    await complete(engine, one)
    assert (await the_job(engine, one.id)).progress == 100.0
