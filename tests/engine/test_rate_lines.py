"""Those that are parked of one lane: what ends one of them touches only few of the others, however
many there are, and no start is lost by it.
"""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.job import JobFilter
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Failed
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.engine.rate_words import MINUTE, insert, parked, rated, started
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, retry, settle, status, the_job


async def scheduled(engine: Engine) -> int:
    """How many jobs are scheduled."""
    counted = await engine.count_jobs(JobFilter(statuses=(Status.SCHEDULED,)))
    return counted.count


async def park(engine: Engine, worker: str, *jobs: str) -> None:
    """Claim until these are parked: one claim looks at a thousand."""
    for _ in range(10):
        if await parked(engine, jobs[-1]):
            return
        assert await started(engine, worker) == []


async def test_cancelling_a_parked_job_leaves_the_others_alone(engine: Engine) -> None:
    """Whatever a lane has parked: only the best of them may have another time."""
    ids = await insert(engine, *(rated() for _ in range(100)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    assert await scheduled(engine) == 99
    assert await engine.cancel(ids[50:51]) == {ids[50]: True}
    assert await scheduled(engine) == 98
    await engine.cancel(ids[1:2])
    assert await scheduled(engine) >= 96


@pytest.mark.parametrize("burst", [1, 3])
async def test_no_start_is_lost_where_parked_jobs_were_cancelled(
    engine: Engine, clock: Clock, burst: int
) -> None:
    """In front, in the middle, and at the end."""
    ids = await insert(engine, *(rated(burst=burst) for _ in range(60)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:burst]
    left = [*ids[10:13], *ids[30:32], *ids[40:41]]
    await engine.cancel([each for each in ids[burst:] if each not in left])
    found: list[str] = []
    for _ in range(len(left)):
        clock.advance(MINUTE + 0.1)
        found += await started(engine, worker)
    assert found == left
    [last] = await insert(engine, rated(burst=burst))
    clock.advance(MINUTE + 0.1)
    assert await started(engine, worker) == [last]


async def test_parked_jobs_that_start_before_their_time_come_in_their_order(
    engine: Engine, clock: Clock
) -> None:
    """Among those that a claim leases: one of another lane came later."""
    ids = await insert(engine, *(rated(burst=3) for _ in range(9)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:3]
    await engine.cancel(ids[4:7])
    [other] = await insert(engine, a_job())
    clock.advance(3 * MINUTE + 0.1)
    assert await started(engine, worker) == [ids[3], *ids[7:], other]


async def test_a_worker_that_asks_for_little_loses_no_start_either(
    engine: Engine, clock: Clock
) -> None:
    ids = await insert(engine, *(rated(burst=3) for _ in range(30)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:3]
    left = [ids[5], *ids[20:24]]
    await engine.cancel([each for each in ids[3:] if each not in left])
    clock.advance(3 * MINUTE + 0.1)
    assert await started(engine, worker, limit=1) == left[:1]
    assert await started(engine, worker, free=1) == left[1:2]
    assert await started(engine, worker, free=0) == []
    assert await started(engine, worker, limit=1) == left[2:3]
    assert await started(engine, worker) == []


async def test_a_new_job_in_a_lane_that_was_emptied_starts_at_once(
    engine: Engine, clock: Clock
) -> None:
    """Nobody is in line any more: it does not wait behind those that are gone."""
    ids = await insert(engine, *(rated() for _ in range(20)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await engine.cancel(ids[1:])
    clock.advance(MINUTE + 1)
    [new] = await insert(engine, rated())
    assert await started(engine, worker) == [new]


async def test_a_job_that_becomes_the_best_is_parked_for_the_next_slot(engine: Engine) -> None:
    """And whoever is the last of those that are parked stays behind those before it."""
    ids = await insert(engine, *(rated() for _ in range(5)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await engine.cancel(ids[1:4])
    at = (await the_job(engine, ids[4])).run_at.timestamp()
    assert at == pytest.approx(await engine.now() + MINUTE, abs=5)


async def test_a_rate_that_jobs_change_is_a_bounded_step(engine: Engine, clock: Clock) -> None:
    """Of very many that are parked a thousand are looked at again; the others start in time and in
    their order all the same.
    """
    ids = await insert(engine, *(rated("1/h", width=2_000) for _ in range(1_200)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await park(engine, worker, ids[-1])
    [last] = await insert(engine, rated("1/m", width=2_000))
    assert await scheduled(engine) >= 199
    await park(engine, worker, ids[1], last)
    left = [*ids[1:3], *ids[500:502], *ids[1_100:1_103], last]
    await engine.cancel([each for each in ids[1:] if each not in left])
    found: list[str] = []
    for _ in range(len(left)):
        clock.advance(MINUTE + 0.1)
        found += await started(engine, worker)
    assert found == left


@pytest.mark.parametrize("by", ["jobs", "operator"])
async def test_a_slower_rate_lets_nobody_start_early_or_pass(
    engine: Engine, clock: Clock, by: str
) -> None:
    ids = await insert(engine, *(rated("1/m") for _ in range(6)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    if by == "jobs":
        await insert(engine, rated("1/h", delay=1e6))
    else:
        await engine.set_rate("default", "h", as_rate("1/h"))
    clock.advance(30 * MINUTE)
    assert await started(engine, worker) == []
    found: list[str] = []
    for _ in range(5):
        clock.advance(60 * MINUTE + 1)
        found += await started(engine, worker)
    assert found == ids[1:]


async def test_a_clock_that_was_ahead_does_not_hold_up_a_key(engine: Engine, clock: Clock) -> None:
    """What it owes is that of one start, however far ahead the clock was."""
    first, second, third = await insert(engine, *(rated() for _ in range(3)))
    clock.advance(1e5)
    worker = await a_worker(engine)
    assert await started(engine, worker) == [first]
    clock.offset -= 1e5
    await engine.prune(older_than=1e6)
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [second]
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [third]


@pytest.mark.parametrize("lane", ["h", ""])
async def test_a_clock_that_was_ahead_does_not_hold_up_new_jobs(
    engine: Engine, clock: Clock, lane: str
) -> None:
    """Of a lane or a queue, though nobody has pruned meanwhile."""
    await engine.set_rate("default", lane, as_rate("1/m"))
    clock.advance(1e5)
    ids = await insert(engine, a_job(lane="h", width=9))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids
    clock.offset -= 1e5
    [new] = await insert(engine, a_job(lane="h", width=9))
    assert await started(engine, worker) == []
    [view] = await engine.rates()
    assert view.next_at is not None
    assert view.next_at.timestamp() <= await engine.now() + MINUTE
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [new]


async def test_a_large_cost_is_owed_although_the_clock_went_back(
    engine: Engine, clock: Clock
) -> None:
    clock.advance(1e5)
    dear, next_one = await insert(engine, rated(cost=10), rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == [dear]
    clock.offset -= 1e5
    await engine.prune(older_than=1e6)
    clock.advance(9 * MINUTE)
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [next_one]


async def test_a_hold_is_kept_until_those_that_it_parked_have_started(
    engine: Engine, open_another: Opener, clock: Clock
) -> None:
    """So they start without `promote_due`, whoever claims them, and what becomes of their places
    is not changed.
    """
    ids = await insert(engine, *(a_job(lane="h", hold=False) for _ in range(2)))
    await engine.hold_lane("default", "h", MINUTE)
    worker = await a_worker(engine)
    assert await started(engine, worker) == []
    assert await parked(engine, ids[0])
    clock.advance(MINUTE + 1)
    await engine.prune(older_than=1e6)
    assert await engine.rates() == []
    [job] = await claim(await open_another(), worker, 10)
    assert job.id == ids[0]
    await engine.prune(older_than=1e6)
    await retry(engine, job, MINUTE)
    assert not await parked(engine, ids[0])
    assert await started(engine, worker) == ids[1:]


async def test_what_a_hold_parked_is_as_before_when_the_hold_is_ended(engine: Engine) -> None:
    ids = await insert(engine, *(a_job(lane="h", hold=False) for _ in range(2)))
    await engine.hold_lane("default", "h", MINUTE)
    worker = await a_worker(engine)
    assert await started(engine, worker) == []
    await engine.hold_lane("default", "h", 0)
    assert await engine.rates() == []
    [job] = await claim(engine, worker, 10)
    await retry(engine, job, MINUTE)
    assert not await parked(engine, ids[0])
    assert await started(engine, worker) == ids[1:]


async def test_a_hold_that_is_over_is_not_shown(engine: Engine, clock: Clock) -> None:
    await insert(engine, a_job(lane="h"))
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    await settle(engine, job, Failed(A_FAILURE, hold_lane=MINUTE))
    assert [view.lane for view in await engine.rates()] == ["h"]
    clock.advance(MINUTE + 1)
    assert await engine.rates() == []


async def test_nobody_is_told_to_ask_again_where_nothing_waits(engine: Engine) -> None:
    """Although there are rates: a worker would ask at once, and again."""
    await engine.set_rate("default", "h", as_rate("1/m"))
    await insert(engine, a_job(lane="h"))
    worker = await a_worker(engine)
    for _ in range(2):
        answer = await engine.exchange([], worker_id=worker, limit=10)
        assert answer.next_in is None


async def test_who_serves_other_queues_is_not_told_when_a_parked_job_may_start(
    engine: Engine,
) -> None:
    await insert(engine, *(rated(queue="slow") for _ in range(5)))
    worker = await a_worker(engine)
    answer = await engine.exchange([], worker_id=worker, queues=["slow"], limit=10)
    assert answer.next_in == pytest.approx(MINUTE, abs=5)
    answer = await engine.exchange([], worker_id=worker, queues=["other"], limit=10)
    assert answer.next_in is None
    for queues in (["other", "slow"], None):
        answer = await engine.exchange([], worker_id=worker, queues=queues, limit=10)
        assert answer.next_in == pytest.approx(MINUTE, abs=5)


async def test_a_parked_job_of_a_paused_queue_waits_without_being_asked_for(
    engine: Engine, clock: Clock
) -> None:
    ids = await insert(engine, rated(), rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await engine.pause("default", True)
    clock.advance(MINUTE + 1)
    for queues in (["default"], None):
        answer = await engine.exchange([], worker_id=worker, queues=queues, limit=10)
        assert (answer.jobs, answer.next_in) == ([], None)
    assert await status(engine, ids[1]) is Status.PENDING
    await engine.pause("default", False)
    assert await started(engine, worker) == ids[1:]
