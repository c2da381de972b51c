"""What operators and outcomes do to the rate of a lane or a queue: they set it and hold it."""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Failed, Outcome, Retry, Settlement
from headrace.model.status import Status
from tests.engine.rate_words import MINUTE, insert, parked, rated, started
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, settle, status


async def test_an_outcome_holds_its_lane(engine: Engine, clock: Clock) -> None:
    """For all jobs of the lane, with a rate or without; those that run go on."""
    kinds: list[Outcome] = [
        Retry(A_FAILURE, 0.0, hold_lane=MINUTE),
        Failed(A_FAILURE, hold_lane=MINUTE),
    ]
    for kind in kinds:
        lane = type(kind).__name__
        jobs = [a_job(lane=lane, width=9), rated(lane=lane, burst=5), a_job(lane=lane, width=9)]
        ids = await insert(engine, *jobs)
        worker = await a_worker(engine)
        [job] = await claim(engine, worker, 1)
        await settle(engine, job, kind)
        other = await insert(engine, a_job(lane=f"free-{lane}"))
        answer = await engine.exchange([], worker_id=worker, limit=10)
        assert [each.id for each in answer.jobs] == other
        assert answer.next_in == pytest.approx(MINUTE, abs=5)
        assert await parked(engine, ids[1])
        clock.advance(MINUTE + 1)
        assert set(ids[1:]) <= set(await started(engine, worker))


async def test_a_refused_outcome_holds_nothing(engine: Engine) -> None:
    first, second = await insert(engine, rated(burst=2), rated(burst=2))
    worker = await a_worker(engine)
    [job] = await claim(engine, worker, 1)
    stale = Settlement(first, job.token + 1, Failed(A_FAILURE, hold_lane=MINUTE))
    assert (await engine.exchange([stale])).refused == (first,)
    assert await started(engine, worker) == [second]


async def test_a_job_without_a_lane_holds_nothing(engine: Engine) -> None:
    _, second, _ = await insert(engine, a_job(), a_job(), rated(delay=MINUTE))
    worker = await a_worker(engine)
    [job] = await claim(engine, worker, 1)
    await settle(engine, job, Failed(A_FAILURE, hold_lane=MINUTE))
    assert await started(engine, worker) == [second]
    assert [(view.lane, view.held_until) for view in await engine.rates()] == [("h", None)]


async def test_an_outcome_does_not_shorten_a_hold(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated(burst=5) for _ in range(3)))
    worker = await a_worker(engine)
    first, second = await claim(engine, worker, 2)
    for job, seconds in ((first, 10 * MINUTE), (second, MINUTE)):
        await settle(engine, job, Failed(A_FAILURE, hold_lane=seconds))
    clock.advance(2 * MINUTE)
    assert await started(engine, worker) == []
    clock.advance(9 * MINUTE)
    assert await started(engine, worker) == ids[2:]


async def test_no_burst_follows_a_hold(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated(burst=5) for _ in range(3)))
    await engine.hold_lane("default", "h", 10 * MINUTE)
    worker = await a_worker(engine)
    assert await started(engine, worker) == []
    clock.advance(10 * MINUTE + 1)
    assert await started(engine, worker) == ids[:1]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[1:2]


async def test_a_hold_can_be_ended(engine: Engine) -> None:
    [job_id] = await insert(engine, a_job(lane="h"))
    await engine.hold_lane("default", "h", 10 * MINUTE)
    worker = await a_worker(engine)
    assert await started(engine, worker) == []
    assert await status(engine, job_id) is Status.SCHEDULED
    [view] = await engine.rates()
    assert (view.lane, view.rate, view.next_at) == ("h", None, view.held_until)
    await engine.hold_lane("default", "h", 0)
    assert await started(engine, worker) == [job_id]


async def test_a_held_queue_is_passed_over(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, a_job(), a_job(lane="h"), a_job(queue="other"))
    await engine.hold_lane("default", "", MINUTE)
    worker = await a_worker(engine)
    answer = await engine.exchange([], worker_id=worker, limit=10)
    assert [job.id for job in answer.jobs] == ids[2:]
    assert answer.next_in == pytest.approx(MINUTE, abs=5)
    assert {await status(engine, job_id) for job_id in ids[:2]} == {Status.PENDING}
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[:2]


async def test_a_queue_has_a_rate(engine: Engine, clock: Clock) -> None:
    """All its jobs count, and while it is used up it is passed over."""
    await engine.set_rate("default", "", as_rate("1/m", 2))
    ids = await insert(engine, a_job(), a_job(lane="h"), a_job(), a_job(priority=-1))
    other = await insert(engine, a_job(queue="other", priority=-2))
    worker = await a_worker(engine)
    answer = await engine.exchange([], worker_id=worker, limit=10)
    assert [job.id for job in answer.jobs] == [*ids[:2], *other]
    assert answer.next_in == pytest.approx(MINUTE, abs=5)
    assert await status(engine, ids[2]) is Status.PENDING
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[2:3]
    await engine.set_rate("default", "", None)
    assert await started(engine, worker) == ids[3:]
    assert await engine.rates() == []


async def test_the_rates_of_queue_and_lane_both_count(engine: Engine, clock: Clock) -> None:
    await engine.set_rate("default", "", as_rate("1/m", 2))
    ids = await insert(engine, rated(), rated(), rated(lane="i"), rated(lane="j"))
    worker = await a_worker(engine)
    assert await started(engine, worker) == [ids[0], ids[2]]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [ids[1]]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [ids[3]]


async def test_what_an_operator_sets_wins_until_it_is_taken_back(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await engine.set_rate("default", "h", as_rate("1/h"))
    # Also jobs that carry none count.
    ids = await insert(engine, rated(), a_job(lane="h", width=1_000), rated())
    [view] = await engine.rates(queue="default", lane="h")
    assert (view.rate, view.by_operator) == (as_rate("1/h"), True)
    assert await started(engine, worker) == ids[:1]
    clock.advance(2 * MINUTE)
    assert await started(engine, worker) == []
    await engine.prune(older_than=1e6)
    # It counts at once, also for those that wait already, and what has started is not forgotten.
    await engine.set_rate("default", "h", as_rate("1/m"))
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[1:2]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[2:]
    await engine.set_rate("default", "h", None)
    [view] = await engine.rates()
    assert (view.rate, view.by_operator) == (as_rate("1/m"), False)


async def test_what_an_operator_sets_is_kept_where_there_are_no_jobs(
    engine: Engine, clock: Clock
) -> None:
    await engine.set_rate("default", "h", as_rate("1/m"))
    clock.advance(1e6)
    await engine.prune(older_than=1)
    assert [view.by_operator for view in await engine.rates()] == [True]


async def test_views_tell_when_the_next_may_start(engine: Engine, clock: Clock) -> None:
    await insert(engine, rated(), rated(), rated(lane="a", queue="b"))
    worker = await a_worker(engine)
    assert len(await started(engine, worker)) == 2
    now = await engine.now()
    views = await engine.rates()
    assert [(view.queue, view.lane) for view in views] == [("b", "a"), ("default", "h")]
    for view in views:
        assert view.next_at is not None
        assert view.next_at.timestamp() == pytest.approx(now + MINUTE, abs=5)
        assert view.held_until is None
    assert await engine.rates(queue="b") == views[:1]
    assert await engine.rates(limit=1) == views[:1]
    clock.advance(2 * MINUTE)
    assert [view.next_at for view in await engine.rates()] == [None, None]
