"""Who is parked behind whom: nobody passes a better one, whatever it costs, and gaps are closed."""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from tests.engine.rate_words import MINUTE, insert, rated, started
from tests.support.verbs import a_worker, the_job


async def minutes_until(engine: Engine, job_id: str) -> float:
    """In how many minutes it may start."""
    return ((await the_job(engine, job_id)).run_at.timestamp() - await engine.now()) / MINUTE


async def test_a_cheap_job_does_not_pass_a_dear_one(engine: Engine, clock: Clock) -> None:
    """The rate would let it start at once."""
    first, dear = await insert(engine, rated(burst=5, cost=3), rated(burst=5, cost=5))
    worker = await a_worker(engine)
    assert await started(engine, worker) == [first]
    [cheap] = await insert(engine, rated(burst=5))
    assert await started(engine, worker) == []
    assert await minutes_until(engine, dear) == pytest.approx(3, abs=0.1)
    clock.advance(3 * MINUTE + 1)
    assert await started(engine, worker) == [dear]
    clock.advance(MINUTE)
    assert await started(engine, worker) == [cheap]


async def test_better_ones_do_not_pass_each_other(engine: Engine) -> None:
    """They are better than the last that is parked, and ask for the next slots in their order."""
    first, last = await insert(engine, rated(burst=5, cost=3), rated(burst=5, cost=5))
    worker = await a_worker(engine)
    assert await started(engine, worker) == [first]
    cheap, dear = await insert(
        engine, rated(burst=5, priority=8), rated(burst=5, priority=9, cost=5)
    )
    assert await started(engine, worker) == []
    assert await minutes_until(engine, dear) == pytest.approx(3, abs=0.1)
    assert await minutes_until(engine, cheap) == pytest.approx(8, abs=0.1)
    assert await minutes_until(engine, last) == pytest.approx(3, abs=0.1)


async def test_those_behind_a_parked_job_that_expires_move_up(engine: Engine, clock: Clock) -> None:
    first, late, last = await insert(engine, rated(), rated(expires_in=10), rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == [first]
    clock.advance(11)
    assert (await engine.expire(10)).ids == (late,)
    clock.advance(MINUTE - 10)
    assert await started(engine, worker) == [last]
