"""Rates: starts are counted, in any window; a job that has to wait is not claimed, keeps its place
in its lane, and is in nobody's way.
"""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import InvalidSetting
from headrace.model.insert_policy import InsertPolicy
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Released
from headrace.model.status import Status
from tests.engine.rate_words import MINUTE, insert, parked, rated, run_all, started
from tests.support.verbs import (
    a_job,
    a_worker,
    claim,
    complete,
    retry,
    settle,
    status,
    the_job,
)


async def test_one_starts_in_each_interval(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated() for _ in range(4)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    assert await started(engine, worker) == []
    clock.advance(MINUTE - 5)
    assert await started(engine, worker) == []
    clock.advance(6)
    assert await started(engine, worker) == ids[1:2]
    clock.advance(MINUTE)
    assert await started(engine, worker) == ids[2:3]


async def test_a_burst_may_start_at_once_and_is_earned_again(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated(burst=3) for _ in range(9)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:3]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[3:4]
    clock.advance(2 * MINUTE)
    assert await started(engine, worker) == ids[4:6]
    clock.advance(100 * MINUTE)
    assert await started(engine, worker) == ids[6:9]


async def test_a_job_that_has_to_wait_is_parked(engine: Engine, clock: Clock) -> None:
    """It is not claimed, spends no attempt, and everybody can see when it may start."""
    first, second, third = await insert(engine, *(rated() for _ in range(3)))
    worker = await a_worker(engine)
    answer = await engine.exchange([], worker_id=worker, limit=10)
    assert [job.id for job in answer.jobs] == [first]
    assert answer.next_in == pytest.approx(MINUTE, abs=5)
    now = await engine.now()
    for job_id, slots in ((second, 1), (third, 2)):
        job = await the_job(engine, job_id)
        assert (job.status, job.parked, job.attempt) == (Status.SCHEDULED, True, 0)
        assert job.run_at.timestamp() == pytest.approx(now + slots * MINUTE, abs=5)
    clock.advance(MINUTE + 1)
    [claimed] = await claim(engine, worker, 10)
    assert (claimed.id, claimed.attempt) == (second, 1)
    assert not await parked(engine, second)
    assert claimed.wait == pytest.approx(1, abs=5)


async def test_others_are_claimed_in_the_same_call(engine: Engine) -> None:
    """Whatever is in front of them, and however little is asked for."""
    await insert(engine, *(rated(priority=5) for _ in range(150)))
    others = await insert(engine, a_job(), a_job(lane="other"), rated(lane="second"))
    worker = await a_worker(engine)
    [first] = await started(engine, worker, limit=1)
    assert first not in others
    assert await started(engine, worker, limit=3) == others


async def test_a_parked_job_starts_whether_or_not_due_jobs_were_moved(
    engine: Engine, clock: Clock
) -> None:
    ids = await insert(engine, *(rated() for _ in range(3)))
    worker = await a_worker(engine)
    await started(engine, worker)
    due = await engine.promote_due(10)
    assert due.next_in == pytest.approx(MINUTE, abs=5)
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[1:2]
    clock.advance(MINUTE + 1)
    assert (await engine.promote_due(10)).moved == 1
    assert await started(engine, worker) == ids[2:3]


async def test_nothing_bunches_after_workers_were_away(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated(burst=2) for _ in range(8)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:2]
    clock.advance(100 * MINUTE)
    await engine.promote_due(100)
    assert await started(engine, worker) == ids[2:4]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[4:5]


async def test_the_better_one_starts_first(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated() for _ in range(4)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    [urgent] = await insert(engine, rated(priority=9))
    assert await started(engine, worker) == []
    order = []
    for _ in range(4):
        clock.advance(MINUTE + 1)
        order += await started(engine, worker)
    assert order == [urgent, *ids[1:]]


async def test_a_parked_job_keeps_its_place_in_its_lane(engine: Engine, clock: Clock) -> None:
    """So those behind it wait, and do not pass it."""
    for hold in (True, False):
        lane = f"hold-{hold}"
        narrow = [rated(lane=lane, width=2, hold=hold) for _ in range(5)]
        ids = await insert(engine, *narrow)
        worker = await a_worker(engine)
        [first] = await claim(engine, worker, 10)
        assert first.id == ids[0]
        [view] = await engine.lanes(lane=lane)
        assert (view.used, view.waiting, view.holders) == (2, 3, tuple(ids[:2]))
        assert await complete(engine, first)
        assert await started(engine, worker) == []
        clock.advance(MINUTE + 1)
        assert await started(engine, worker) == ids[1:2]
        clock.advance(MINUTE + 1)
        assert await started(engine, worker) == ids[2:3]


async def test_what_becomes_of_a_place_during_a_retry_is_not_changed(
    engine: Engine, clock: Clock
) -> None:
    first, second, third = await insert(engine, *(rated(width=1) for _ in range(3)))
    worker = await a_worker(engine)
    for job_id in (first, second):
        [job] = await claim(engine, worker, 10)
        assert job.id == job_id
        # It yields: the next has the place, and this one comes after it.
        assert await retry(engine, job, 10 * MINUTE)
        assert await started(engine, worker) == []
        clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [third]
    assert not (await the_job(engine, second)).hold


async def test_a_cost_counts_for_several_starts(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated(burst=4, cost=cost) for cost in (2, 1.5, 1, 1)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:2]
    clock.advance(0.5 * MINUTE + 1)
    assert await started(engine, worker) == ids[2:3]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[3:4]


async def test_a_cost_beyond_the_burst_waits_until_all_is_paid_for(
    engine: Engine, clock: Clock
) -> None:
    small, large, after = await insert(engine, rated(), rated(cost=5), rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == [small]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [large]
    clock.advance(4 * MINUTE)
    assert await started(engine, worker) == []
    clock.advance(MINUTE)
    assert await started(engine, worker) == [after]


async def test_retries_count_as_starts(engine: Engine, clock: Clock) -> None:
    [job_id] = await insert(engine, rated())
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    await retry(engine, job)
    assert await started(engine, worker) == []
    assert await parked(engine, job_id)
    clock.advance(MINUTE + 1)
    [again] = await claim(engine, worker)
    assert (again.id, again.attempt) == (job_id, 2)


async def test_retries_do_not_count_if_told_so(engine: Engine, clock: Clock) -> None:
    first, second = await insert(engine, *(rated(count_retries=False) for _ in range(2)))
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    await retry(engine, job)
    assert await started(engine, worker) == [first]
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [second]


async def test_a_job_that_is_given_back_has_used_its_start(engine: Engine, clock: Clock) -> None:
    [job_id] = await insert(engine, rated())
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    await settle(engine, job, Released())
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [job_id]


async def test_no_more_rated_jobs_than_could_start_at_once(engine: Engine) -> None:
    """The others stay ready, for whoever has a free slot."""
    ids = await insert(engine, *(rated(burst=10) for _ in range(5)))
    plain = await insert(engine, *(a_job() for _ in range(3)))
    worker = await a_worker(engine)
    assert await started(engine, worker, free=2) == [*ids[:2], *plain]
    assert await started(engine, worker, free=0) == []
    other = await a_worker(engine, "other")
    assert await started(engine, other, free=7) == ids[2:]


async def test_jobs_without_a_rate_do_not_count(engine: Engine) -> None:
    plain = [a_job(lane="h", width=1_000) for _ in range(3)]
    ids = await insert(engine, rated(), *plain, rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:4]


async def test_the_newest_job_sets_the_rate(engine: Engine, clock: Clock) -> None:
    """What has started counts by the new one, and who is parked waits as long as that says."""
    ids = await insert(engine, *(rated("1/h") for _ in range(3)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await insert(engine, rated("1/m", delay=1e6))
    [view] = await engine.rates()
    assert (view.rate, view.by_operator) == (as_rate("1/m"), False)
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[1:2]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[2:3]


async def test_a_rate_needs_a_lane(engine: Engine) -> None:
    with pytest.raises(InvalidSetting, match="needs a lane"):
        await insert(engine, a_job(rate=as_rate("1/m")))


async def test_ending_a_parked_job_gives_its_place_to_the_next(
    engine: Engine, clock: Clock
) -> None:
    first, late, gone, last = await insert(
        engine, rated(width=1), rated(width=1, expires_in=10), rated(width=1), rated(width=1)
    )
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    assert (job.id, await complete(engine, job)) == (first, True)
    assert await started(engine, worker) == []
    assert await parked(engine, late)
    clock.advance(11)
    assert (await engine.expire(10)).ids == (late,)
    assert await started(engine, worker) == []
    assert await parked(engine, gone)
    assert await engine.cancel([gone]) == {gone: True}
    clock.advance(MINUTE)
    assert await started(engine, worker) == [last]
    assert await engine.rerun([gone]) == [gone]
    assert not (await the_job(engine, gone)).hold


async def test_those_behind_a_parked_job_that_is_cancelled_move_up(
    engine: Engine, clock: Clock
) -> None:
    ids = await insert(engine, *(rated() for _ in range(30)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await engine.cancel(ids[1:28])
    for last in ids[28:]:
        clock.advance(MINUTE + 1)
        assert await started(engine, worker) == [last]


async def test_a_parked_job_is_not_put_off_by_a_further_call(engine: Engine, clock: Clock) -> None:
    """It is due: a debounced call gives it other arguments, and leaves its time alone."""
    policy = InsertPolicy(on_duplicate="debounce")
    first = rated(key="a", policy=policy)
    second = rated(key="b", policy=policy)
    await insert(engine, first, second)
    worker = await a_worker(engine)
    assert await started(engine, worker) == [first.id]
    time = (await the_job(engine, second.id)).run_at
    again = rated(key="b", policy=policy, delay=1e6, args=b'{"n":2}')
    answer = await engine.insert_by_policy(again)
    assert answer.inserted is not None
    assert answer.inserted.id == second.id
    job = await the_job(engine, second.id)
    assert (job.run_at, job.args, job.parked) == (time, {"n": 2}, True)
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [second.id]


async def test_run_now_does_not_pass_a_rate(engine: Engine, clock: Clock) -> None:
    first, second = await insert(engine, rated(), rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == [first]
    assert await engine.rerun([second]) == [second]
    assert await started(engine, worker) == []
    assert await status(engine, second) is Status.SCHEDULED


async def test_a_job_that_is_run_again_brings_its_rate_along(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated(burst=2) for _ in range(2)))
    worker = await a_worker(engine)
    assert len(await run_all(engine, worker)) == 2
    await engine.prune(older_than=1e6)
    assert [view.lane for view in await engine.rates()] == ["h"]
    clock.advance(10 * MINUTE)
    await engine.prune(older_than=1e6)
    assert await engine.rates() == []
    await engine.rerun(ids)
    assert len(await started(engine, worker)) == 2
    [view] = await engine.rates()
    assert view.rate == as_rate("1/m", 2)
    await insert(engine, rated(burst=2))
    assert await started(engine, worker) == []


async def test_a_rate_is_kept_while_a_job_carries_it(engine: Engine, clock: Clock) -> None:
    later = [rated(delay=5 * MINUTE), rated(delay=5 * MINUTE)]
    await insert(engine, *later)
    clock.advance(4 * MINUTE)
    await engine.prune(older_than=1e6)
    worker = await a_worker(engine)
    clock.advance(2 * MINUTE)
    await engine.promote_due(10)
    assert len(await started(engine, worker)) == 1
