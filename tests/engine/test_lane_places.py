"""Who keeps a place in a lane while a job waits to be tried again, and who passes."""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.outcome import Released, Snoozed
from tests.support.verbs import (
    a_worker,
    claim,
    complete,
    enqueue,
    retry,
    settle,
)


async def test_a_held_place_lets_nobody_pass(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a", hold=True)
    second = await enqueue(engine, lane="a", hold=True)
    [job] = await claim(engine, worker, 10)
    await retry(engine, job, 60)
    await enqueue(engine, lane="a", hold=True, priority=9)
    assert await claim(engine, worker, 10) == []
    clock.advance(61)
    await engine.promote_due(10)
    [again] = await claim(engine, worker, 10)
    assert (again.id, again.attempt) == (first, 2)
    await complete(engine, again)
    [urgent] = await claim(engine, worker, 10)
    assert urgent.priority == 9
    await complete(engine, urgent)
    [last] = await claim(engine, worker, 10)
    assert last.id == second


async def test_a_held_retry_without_delay_is_not_beaten(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a", hold=True)
    [job] = await claim(engine, worker, 10)
    await retry(engine, job, 0)
    await enqueue(engine, lane="a", hold=True, priority=9)
    [again] = await claim(engine, worker, 10)
    assert again.id == first


async def test_a_yielded_place_lets_others_pass(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a", hold=False)
    second = await enqueue(engine, lane="a", hold=False)
    third = await enqueue(engine, lane="a", hold=False)
    [job] = await claim(engine, worker, 10)
    await retry(engine, job, 60)
    [passing] = await claim(engine, worker, 10)
    assert passing.id == second
    clock.advance(61)
    await engine.promote_due(10)
    assert await claim(engine, worker, 10) == []
    await complete(engine, passing)
    # Back in line with its old number: before the third.
    [again] = await claim(engine, worker, 10)
    assert again.id == first
    await complete(engine, again)
    [last] = await claim(engine, worker, 10)
    assert last.id == third


async def test_a_yield_retry_without_delay_keeps_its_number(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a", hold=False)
    await enqueue(engine, lane="a", hold=False)
    [job] = await claim(engine, worker, 10)
    await retry(engine, job, 0)
    [again] = await claim(engine, worker, 10)
    assert again.id == first


async def test_a_released_job_keeps_its_place_unless_it_is_beaten(engine: Engine) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a")
    await enqueue(engine, lane="a")
    [job] = await claim(engine, worker, 10)
    await settle(engine, job, Released())
    [again] = await claim(engine, worker, 10)
    assert again.id == first
    urgent = await enqueue(engine, lane="a", priority=5)
    await settle(engine, again, Released())
    [now] = await claim(engine, worker, 10)
    assert now.id == urgent


@pytest.mark.parametrize("hold", [True, False])
async def test_a_snoozed_job_treats_its_place_like_a_retry(
    engine: Engine, clock: Clock, hold: bool
) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="a", hold=hold)
    second = await enqueue(engine, lane="a", hold=hold)
    [job] = await claim(engine, worker, 10)
    await settle(engine, job, Snoozed(10))
    claimed = await claim(engine, worker, 10)
    assert [job.id for job in claimed] == ([] if hold else [second])
    clock.advance(11)
    await engine.promote_due(10)
    for job in claimed:
        await complete(engine, job)
    [again] = await claim(engine, worker, 10)
    assert (again.id, again.attempt) == (first, 1)
