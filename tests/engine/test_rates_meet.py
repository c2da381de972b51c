"""Where rates meet expiry, policies, widths, followers, lost workers and unknown tasks."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.insert_policy import InsertPolicy
from headrace.model.limits.rate import as_rate
from headrace.model.outcome import Completed, Released, Retry, Settlement, Snoozed
from headrace.model.status import Status
from tests.engine.rate_words import MINUTE, insert, parked, rated, run_all, started
from tests.support.verbs import (
    A_FAILURE,
    LEASE,
    a_job,
    a_worker,
    claim,
    complete,
    retry,
    settle,
    status,
    the_job,
)


async def test_a_parked_job_whose_time_to_start_is_over_does_not_start(
    engine: Engine, clock: Clock
) -> None:
    """Nor does it use up a start, whoever notices it first, the claim or `expire`."""
    ids = await insert(engine, rated(), rated(expires_in=30), rated(), rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    clock.advance(MINUTE + 1)
    found = await started(engine, worker)
    await engine.expire(10)
    found += await started(engine, worker)
    assert found == ids[2:3]
    assert await status(engine, ids[1]) is Status.CANCELLED
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[3:]


async def test_a_parked_job_that_starts_in_time_does_not_expire(
    engine: Engine, clock: Clock
) -> None:
    ids = await insert(engine, rated(), rated(expires_in=MINUTE + 30))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    clock.advance(MINUTE + 1)
    [job] = await claim(engine, worker, 10)
    clock.advance(MINUTE)
    assert (await engine.expire(10)).ids == ()
    assert await complete(engine, job)


async def test_a_job_that_replaces_a_parked_one_comes_behind_the_others(
    engine: Engine, clock: Clock
) -> None:
    policy = InsertPolicy(on_duplicate="replace")
    jobs = [rated(key=name, policy=policy) for name in "abc"]
    await insert(engine, *jobs)
    worker = await a_worker(engine)
    assert await started(engine, worker) == [jobs[0].id]
    new = rated(key="b", policy=policy)
    answer = await engine.insert_by_policy(new)
    assert answer.cancelled == (jobs[1].id,)
    for expected in (jobs[2].id, new.id):
        clock.advance(MINUTE + 1)
        assert await started(engine, worker) == [expected]


async def test_a_parked_job_fills_its_lane(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, rated(width=2), rated(width=2))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    policy = InsertPolicy(when_full="refuse")
    assert (await engine.insert_by_policy(rated(width=2, policy=policy))).inserted is None
    policy = InsertPolicy(when_full="replace")
    first = await engine.insert_by_policy(rated(width=2, policy=policy))
    second = await engine.insert_by_policy(rated(width=2, policy=policy))
    assert first.inserted is not None
    assert (first.cancelled, second.cancelled) == ((), (first.inserted.id,))
    assert await parked(engine, ids[1])
    policy = InsertPolicy(when_full="cancel_running")
    last = rated(width=2, policy=policy)
    assert second.inserted is not None
    answer = await engine.insert_by_policy(last)
    assert set(answer.cancelled) == {ids[1], second.inserted.id}
    assert answer.stopping == tuple(ids[:1])
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [last.id]


async def test_a_policy_that_is_refused_sets_no_rate(engine: Engine) -> None:
    await insert(engine, rated(width=1))
    policy = InsertPolicy(when_full="refuse")
    refused = rated("9/s", width=1, policy=policy)
    assert (await engine.insert_by_policy(refused)).inserted is None
    assert [view.rate for view in await engine.rates()] == [as_rate("1/m")]


async def test_a_job_that_exists_already_sets_no_rate(engine: Engine) -> None:
    first = rated(key="k")
    await insert(engine, first)
    await insert(engine, rated("9/s", key="k"))
    again = rated("9/s")
    again.id = first.id
    await insert(engine, again)
    policy = InsertPolicy(on_duplicate="return")
    await engine.insert_by_policy(rated("9/s", key="k", policy=policy))
    assert [view.rate for view in await engine.rates()] == [as_rate("1/m")]


async def test_a_debounced_call_brings_rate_and_cost(engine: Engine, clock: Clock) -> None:
    policy = InsertPolicy(on_duplicate="debounce")
    plain = a_job(lane="h", key="k", delay=MINUTE, width=9, hold=False)
    await insert(engine, plain)
    again = rated(key="k", policy=policy, delay=MINUTE, width=9, cost=5)
    answer = await engine.insert_by_policy(again)
    assert answer.inserted is not None
    assert not answer.inserted.created
    assert [view.rate for view in await engine.rates()] == [as_rate("1/m")]
    [last] = await insert(engine, rated(delay=MINUTE, width=9))
    clock.advance(MINUTE + 1)
    await engine.promote_due(10)
    worker = await a_worker(engine)
    assert await started(engine, worker) == [plain.id]
    clock.advance(4 * MINUTE)
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [last]


async def test_a_lane_that_is_made_narrower_keeps_those_that_are_parked(
    engine: Engine, clock: Clock
) -> None:
    ids = await insert(engine, *(rated(width=5) for _ in range(5)))
    worker = await a_worker(engine)
    [job] = await claim(engine, worker, 10)
    ids += await insert(engine, rated(width=2), rated(width=2))
    assert await complete(engine, job)
    for n in range(1, 7):
        clock.advance(MINUTE + 1)
        [job] = await claim(engine, worker, 10)
        assert job.id == ids[n]
        assert await complete(engine, job)


async def test_a_lane_that_is_made_wider_parks_more(engine: Engine) -> None:
    ids = await insert(engine, *(rated(width=2) for _ in range(6)))
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await insert(engine, rated(width=6))
    assert await started(engine, worker) == []
    assert [await parked(engine, each) for each in ids[1:]] == [True] * 5


async def test_a_lost_attempt_has_used_its_start_and_so_does_the_next(
    engine: Engine, clock: Clock
) -> None:
    [job_id] = await insert(engine, rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == [job_id]
    clock.advance(LEASE + 1)
    other = await a_worker(engine, "other")
    [lost] = await engine.take_lost(10)
    outcome = Retry(A_FAILURE, 0.0)
    await engine.exchange([Settlement(lost.job.id, lost.job.token, outcome)])
    assert await started(engine, other) == []
    clock.advance(MINUTE - LEASE)
    assert await started(engine, other) == [job_id]
    await insert(engine, rated())
    assert await started(engine, other) == []


async def test_a_job_that_was_parked_is_given_back_as_it_was(engine: Engine, clock: Clock) -> None:
    """Its place is not kept for having been parked: a better one may take it."""
    first, second = await insert(engine, rated("1/m", 2, width=1), rated("1/m", 2, width=1))
    worker = await a_worker(engine)
    [job] = await claim(engine, worker, 10)
    assert (job.id, await complete(engine, job)) == (first, True)
    await engine.hold_lane("default", "h", MINUTE)
    assert await started(engine, worker) == []
    clock.advance(2 * MINUTE)
    [job] = await claim(engine, worker, 10)
    assert (job.id, await settle(engine, job, Released())) == (second, True)
    [better] = await insert(engine, rated("1/m", 2, width=1, priority=5))
    clock.advance(2 * MINUTE)
    assert await started(engine, worker) == [better]


async def test_a_job_that_is_parked_and_given_back_twice_can_be_beaten(
    engine: Engine, clock: Clock
) -> None:
    """What holds its place during a retry does so only then."""
    [job_id] = await insert(engine, rated(width=1, hold=True))
    worker = await a_worker(engine)
    for _ in range(3):
        [job] = await claim(engine, worker, 10)
        assert await settle(engine, job, Released())
        assert await started(engine, worker) == []
        assert await parked(engine, job_id)
        clock.advance(MINUTE + 1)
    [job] = await claim(engine, worker, 10)
    [better] = await insert(engine, rated(priority=5, width=1, hold=True))
    assert await settle(engine, job, Released())
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [better]


async def test_a_parked_job_of_an_unknown_task_is_left_for_others(
    engine: Engine, clock: Clock
) -> None:
    """Those who would give it back use up no start, however often they ask first."""
    knows = await a_worker(engine, "knows", tasks=("work",))
    stranger = await a_worker(engine, "stranger", tasks=("other",))
    ids = await insert(engine, rated(), rated(), rated())
    for job_id in ids:
        assert await started(engine, stranger) == []
        assert await started(engine, knows) == [job_id]
        assert await started(engine, stranger) == []
        clock.advance(MINUTE + 1)


async def test_a_parked_job_of_an_unknown_task_is_not_started_before_its_time_either(
    engine: Engine, clock: Clock
) -> None:
    """Where a job before it was cancelled."""
    knows = await a_worker(engine, "knows", tasks=("work", "other"))
    stranger = await a_worker(engine, "stranger", tasks=("other",))
    first, second, third = await insert(engine, rated(), rated(), rated())
    assert await started(engine, knows) == [first]
    await engine.set_rate("default", "h", as_rate("1/s"))
    clock.advance(2)
    await insert(engine, rated(task="other"))
    await engine.cancel([second])
    for worker in (stranger, stranger):
        assert third not in await started(engine, worker)
    clock.advance(2)
    assert third in await started(engine, knows)


async def test_a_queue_with_a_rate_is_not_used_up_by_who_does_not_know_its_tasks(
    engine: Engine,
) -> None:
    await engine.set_rate("default", "", as_rate("1/m"))
    stranger = await a_worker(engine, "stranger", tasks=("other",))
    knows = await a_worker(engine, "knows", tasks=("work",))
    [job_id] = await insert(engine, a_job())
    assert await started(engine, stranger) == []
    assert await started(engine, knows) == [job_id]


async def test_a_job_that_sleeps_counts_each_time_it_goes_on(engine: Engine, clock: Clock) -> None:
    first, second = await insert(engine, rated(), rated())
    worker = await a_worker(engine)
    [job] = await claim(engine, worker, 10)
    await settle(engine, job, Snoozed(MINUTE))
    assert not await parked(engine, first)
    clock.advance(MINUTE + 1)
    await engine.promote_due(10)
    assert await started(engine, worker) == [first]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [second]


async def test_followers_have_rates(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    await insert(engine, a_job())
    [job] = await claim(engine, worker)
    follow = (rated(), rated())
    await engine.exchange(
        [Settlement(job.id, job.token, Completed(b"1"), follow=follow)], worker_id=worker, limit=9
    )
    assert [view.rate for view in await engine.rates()] == [as_rate("1/m")]
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [follow[1].id]


async def test_many_that_are_run_again_start_at_their_rate(engine: Engine, clock: Clock) -> None:
    ids = await insert(engine, *(rated(burst=3, width=2) for _ in range(9)))
    worker = await a_worker(engine)
    done: list[str] = []
    while len(done) < len(ids):
        done += [job.id for job in await run_all(engine, worker)]
        clock.advance(MINUTE)
    clock.advance(100 * MINUTE)
    await engine.prune(older_than=1e9)
    assert await engine.rates() == []
    jobs = await engine.get(ids)
    again = await engine.rerun_unchanged({job.id: job.token for job in jobs})
    assert len(again) == len(ids)
    found = [job.id for job in await run_all(engine, worker)]
    found += [job.id for job in await run_all(engine, worker)]
    assert len(found) == 3
    for _ in range(6):
        clock.advance(MINUTE + 1)
        found += [job.id for job in await run_all(engine, worker)]
    assert sorted(found) == sorted(ids)


async def test_a_cancelled_parked_job_that_is_run_again_starts_at_its_rate(
    engine: Engine, clock: Clock
) -> None:
    ids = await insert(engine, rated(), rated())
    worker = await a_worker(engine)
    assert await started(engine, worker) == ids[:1]
    await engine.cancel(ids[1:])
    assert await engine.rerun(ids[1:]) == ids[1:]
    job = await the_job(engine, ids[1])
    assert (job.parked, job.hold) == (False, False)
    assert await started(engine, worker) == []
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == ids[1:]


async def test_a_retry_keeps_its_place_while_it_is_parked(engine: Engine, clock: Clock) -> None:
    """As one that holds its place does, and gives it up afterwards as it would have."""
    first, second = await insert(engine, *(rated(width=1, hold=True) for _ in range(2)))
    worker = await a_worker(engine)
    [job] = await claim(engine, worker, 10)
    await retry(engine, job, 1.0)
    clock.advance(2)
    await engine.promote_due(10)
    assert await started(engine, worker) == []
    assert await parked(engine, first)
    clock.advance(MINUTE)
    [job] = await claim(engine, worker, 10)
    assert (job.id, job.attempt) == (first, 2)
    assert await complete(engine, job)
    clock.advance(MINUTE + 1)
    assert await started(engine, worker) == [second]


async def test_the_last_of_several_sets_the_rate(engine: Engine) -> None:
    jobs = [rated("1/m"), rated("2/m"), rated("3/m", lane="i"), rated("4/m")]
    await engine.insert(jobs)
    found = {view.lane: view.rate for view in await engine.rates()}
    assert found == {"h": as_rate("4/m"), "i": as_rate("3/m")}
