"""Who sets the width of a lane: new jobs when they are due, and whoever comes into an empty one."""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.outcome import Outcome, Released, Retry, Snoozed
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
)


async def width(engine: Engine, lane: str = "l") -> int:
    [seen] = await engine.lanes(queue="default", lane=lane)
    return seen.width


async def test_the_last_new_job_of_a_call_sets_the_width(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(lane="l", width=each) for each in (1, 3, 2, 1, 2)])
    assert await width(engine) == 2
    await engine.insert([a_job(lane="l", width=each) for each in (5, 3)])
    assert await width(engine) == 3
    assert len(await claim(engine, worker, 10)) == 3


@pytest.mark.parametrize("already", [False, True])
async def test_the_last_width_counts_for_all_jobs_of_its_call(
    engine: Engine, already: bool
) -> None:
    worker = await a_worker(engine)
    if already:
        await enqueue(engine, lane="l", width=2)
    urgent = a_job(lane="l", width=4, priority=5)
    await engine.insert(
        [a_job(lane="l", width=4), urgent, a_job(lane="l", width=4), a_job(lane="l", width=1)]
    )
    [lane] = await engine.lanes()
    assert (lane.width, lane.holders, lane.waiting) == (1, (urgent.id,), 3 + already)
    assert [job.id for job in await claim(engine, worker, 10)] == [urgent.id]


async def test_a_narrower_new_job_narrows_a_lane_that_nobody_waits_in(engine: Engine) -> None:
    await enqueue(engine, lane="l", width=4)
    await enqueue(engine, lane="l", width=2)
    assert await width(engine) == 2


async def test_a_scheduled_job_sets_the_width_when_it_becomes_due(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(lane="l") for _ in range(4)])
    await enqueue(engine, lane="l", width=3, delay=60)
    assert await width(engine) == 1
    assert len(await claim(engine, worker, 10)) == 1
    clock.advance(61)
    await engine.promote_due(10)
    assert await width(engine) == 3
    assert len(await claim(engine, worker, 10)) == 2


async def test_a_scheduled_job_that_is_run_now_sets_the_width(engine: Engine) -> None:
    await enqueue(engine, lane="l")
    later = await enqueue(engine, lane="l", width=2, delay=600)
    await engine.rerun([later])
    assert await width(engine) == 2


async def test_of_several_that_become_due_the_last_sets_the_width(
    engine: Engine, clock: Clock
) -> None:
    await enqueue(engine, lane="l", width=5)
    await enqueue(engine, lane="l", width=2, delay=60)
    await enqueue(engine, lane="l", width=3, delay=50)
    await enqueue(engine, lane="l", width=4, delay=40)
    clock.advance(70)
    await engine.promote_due(10)
    assert await width(engine) == 2


async def test_a_scheduled_job_that_is_cancelled_sets_nothing(engine: Engine) -> None:
    await enqueue(engine, lane="l")
    later = await enqueue(engine, lane="l", width=2, delay=600)
    await engine.cancel([later])
    assert await width(engine) == 1


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize(
    "outcome", [Retry(A_FAILURE, 0), Retry(A_FAILURE, 60), Snoozed(60), Released()], ids=repr
)
async def test_a_job_that_comes_back_leaves_the_width_alone(
    engine: Engine, clock: Clock, outcome: Outcome, hold: bool
) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, lane="l", width=3, hold=hold)
    [job] = await claim(engine, worker)
    await enqueue(engine, lane="l", width=2)
    assert await settle(engine, job, outcome)
    assert await width(engine) == 2
    clock.advance(61)
    await engine.promote_due(10)
    assert await width(engine) == 2
    assert len(await claim(engine, worker, 10)) == 2


async def test_a_job_that_is_run_again_leaves_the_width_alone(engine: Engine) -> None:
    worker = await a_worker(engine)
    wide = await enqueue(engine, lane="l", width=3)
    [job] = await claim(engine, worker)
    await fail(engine, job)
    unstarted = await enqueue(engine, lane="l", width=4)
    await engine.cancel([unstarted])
    await enqueue(engine, lane="l", width=2)
    assert await engine.rerun([wide, unstarted]) == [wide, unstarted]
    assert await width(engine) == 2


async def test_into_an_empty_lane_a_job_brings_its_own_width(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    again, later = (
        await enqueue(engine, lane="l", width=3),
        await enqueue(engine, lane="m", width=4, hold=False),
    )
    first, second = await claim(engine, worker, 2)
    await fail(engine, first)
    await retry(engine, second, 60)
    for lane in ("l", "m"):
        await enqueue(engine, lane=lane, width=1)
        [job] = await claim(engine, worker)
        await complete(engine, job)
    assert await engine.lanes() == []
    await engine.rerun([again])
    assert await width(engine, "l") == 3
    clock.advance(61)
    await engine.promote_due(10)
    assert await width(engine, "m") == 4
    assert {job.id for job in await claim(engine, worker, 5)} == {again, later}


async def test_of_several_that_come_back_into_an_empty_lane_the_first_counts(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    for each in (2, 3):
        await enqueue(engine, lane="l", width=each, hold=False)
        [job] = await claim(engine, worker)
        await retry(engine, job, 60)
    clock.advance(61)
    await engine.promote_due(10)
    assert await width(engine) == 2
