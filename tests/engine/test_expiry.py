"""Jobs that have to start by a time: cancelled if they do not, whoever is there to run them."""

from __future__ import annotations

import asyncio

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.insert_policy import EXPIRED
from headrace.model.job import JobFilter
from headrace.model.outcome import Released, Snoozed
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.support.verbs import (
    a_job,
    a_worker,
    claim,
    complete,
    enqueue,
    retry,
    settle,
    status,
    the_job,
)


async def test_a_job_that_has_not_started_in_time_is_cancelled(
    engine: Engine, clock: Clock
) -> None:
    job_id = await enqueue(engine, expires_in=60)
    early = await engine.expire(10)
    assert early.ids == ()
    assert early.next_in == pytest.approx(60, abs=5)
    clock.advance(61)
    late = await engine.expire(10)
    assert (late.ids, late.next_in) == ((job_id,), None)
    job = await the_job(engine, job_id)
    assert (job.status, job.error, job.error_type) == (Status.CANCELLED, EXPIRED, None)
    assert not job.cancel_requested
    assert job.completed_at is not None


async def test_expire_ends_a_job_once(engine: Engine, clock: Clock) -> None:
    await enqueue(engine, expires_in=1)
    clock.advance(2)
    assert len((await engine.expire(10)).ids) == 1
    assert (await engine.expire(10)).ids == ()


async def test_a_time_to_start_by_is_shown_until_it_has_started(
    engine: Engine, clock: Clock
) -> None:
    moment = await engine.now() + 500
    job_id = await enqueue(engine, expires_at=moment)
    shown = (await the_job(engine, job_id)).expires_at
    assert shown is not None
    assert shown.timestamp() == pytest.approx(moment, abs=0.01)
    [listed] = (await engine.list_jobs(JobFilter(), brief=True)).jobs
    assert listed.expires_at == shown
    other = await enqueue(engine)
    assert (await the_job(engine, other)).expires_at is None
    worker = await a_worker(engine)
    for job in await claim(engine, worker, 2):
        await complete(engine, job)
    assert (await the_job(engine, job_id)).expires_at is None


async def test_a_time_counts_before_a_number_of_seconds(engine: Engine, clock: Clock) -> None:
    moment = await engine.now() + 500
    job_id = await enqueue(engine, expires_at=moment, expires_in=1)
    clock.advance(5)
    assert (await engine.expire(10)).ids == ()
    clock.advance(500)
    assert (await engine.expire(10)).ids == (job_id,)


async def test_a_claim_never_takes_an_expired_job(engine: Engine, clock: Clock) -> None:
    """Although nobody has called `expire` yet."""
    expired = [a_job(expires_in=10, priority=5) for _ in range(30)]
    good = [a_job() for _ in range(3)]
    await engine.insert([*expired, *good])
    worker = await a_worker(engine)
    clock.advance(11)
    claimed = await claim(engine, worker, 20)
    assert [job.id for job in claimed] == [job.id for job in good]
    ended = (await engine.expire(100)).ids
    left = {job.id for job in expired} - set(ended)
    # Whoever claims may have ended them already.
    assert all([await status(engine, job_id) is Status.CANCELLED for job_id in left])


async def test_a_claim_over_several_queues_takes_no_expired_job(
    engine: Engine, clock: Clock
) -> None:
    await engine.insert([a_job(queue=name, expires_in=10, priority=9) for name in ("a", "b", "c")])
    good = [a_job(queue=name) for name in ("a", "b")]
    await engine.insert(good)
    worker = await a_worker(engine)
    clock.advance(11)
    claimed = await claim(engine, worker, 10, queues=["a", "b", "c"])
    assert {job.id for job in claimed} == {job.id for job in good}


async def test_a_scheduled_job_expires_before_it_is_due(engine: Engine, clock: Clock) -> None:
    job_id = await enqueue(engine, delay=1_000, expires_in=60)
    clock.advance(61)
    assert (await engine.expire(10)).ids == (job_id,)
    clock.advance(1_000)
    assert (await engine.promote_due(10)).moved == 0


async def test_a_waiting_job_expires_and_its_lane_goes_on(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="x")
    second = await enqueue(engine, lane="x", expires_in=60)
    third = await enqueue(engine, lane="x")
    [running] = await claim(engine, worker, 5)
    assert running.id == first
    clock.advance(61)
    assert (await engine.expire(10)).ids == (second,)
    await complete(engine, running)
    [after] = await claim(engine, worker, 5)
    assert after.id == third


async def test_an_expired_job_with_a_place_gives_it_to_the_next(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    first = await enqueue(engine, lane="x", expires_in=60)
    second = await enqueue(engine, lane="x")
    clock.advance(61)
    await engine.expire(10)
    assert await status(engine, first) is Status.CANCELLED
    [claimed] = await claim(engine, worker, 5)
    assert claimed.id == second


async def test_who_has_the_place_of_an_expired_job_is_claimed_in_its_order(
    engine: Engine, clock: Clock
) -> None:
    """If the claim that ends the one takes the other, it comes before those that came later."""
    await enqueue(engine, lane="l", expires_in=10)
    second = await enqueue(engine, lane="l")
    third = await enqueue(engine)
    worker = await a_worker(engine)
    clock.advance(11)
    found = [job.id for job in await claim(engine, worker, 10)]
    assert found in ([second, third], [third])


async def test_a_job_that_runs_does_not_expire(engine: Engine, clock: Clock) -> None:
    job_id = await enqueue(engine, expires_in=60)
    worker = await a_worker(engine)
    [job] = await claim(engine, worker)
    clock.advance(61)
    assert (await engine.expire(10)).ids == ()
    assert await status(engine, job_id) is Status.RUNNING
    assert await complete(engine, job)


async def test_a_job_that_has_started_once_does_not_expire(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, expires_in=60)
    [job] = await claim(engine, worker)
    await retry(engine, job, 100)
    clock.advance(101)
    assert (await engine.expire(10)).ids == ()
    await engine.promote_due(10)
    [again] = await claim(engine, worker)
    assert (again.id, again.attempt) == (job_id, 2)


async def test_a_job_that_was_given_back_unstarted_expires(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, expires_in=60)
    [job] = await claim(engine, worker)
    await settle(engine, job, Released())
    clock.advance(61)
    assert await claim(engine, worker, 5) == []
    await engine.expire(10)
    assert await status(engine, job_id) is Status.CANCELLED


async def test_the_earliest_are_ended_first_and_no_more_than_asked_for(
    engine: Engine, clock: Clock
) -> None:
    jobs = [a_job(expires_in=seconds) for seconds in (30, 10, 20)]
    await engine.insert(jobs)
    clock.advance(31)
    late, first, second = (job.id for job in jobs)
    found = await engine.expire(2)
    assert set(found.ids) == {first, second}
    assert found.next_in == 0.0
    assert (await engine.expire(2)).ids == (late,)


async def test_a_job_that_is_put_off_unstarted_expires_in_time(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    first, second = [await enqueue(engine, expires_in=60) for _ in range(2)]
    for job in await claim(engine, worker, 10):
        await settle(engine, job, Snoozed(30.0, started=job.id == second))
    assert (await the_job(engine, first)).expires_at is not None
    assert (await the_job(engine, second)).expires_at is None
    clock.advance(31)
    await engine.promote_due(10)
    # Also one whose time comes while a worker has it.
    [job] = [each for each in await claim(engine, worker, 10) if each.id == first]
    clock.advance(30)
    assert (await engine.expire(10)).ids == ()
    await settle(engine, job, Snoozed(30.0, started=False))
    assert (await engine.expire(10)).ids == (first,)
    assert await status(engine, first) is Status.CANCELLED


async def test_jobs_without_a_time_are_left_alone(engine: Engine, clock: Clock) -> None:
    job_id = await enqueue(engine)
    clock.advance(1e6)
    found = await engine.expire(10)
    assert (found.ids, found.next_in) == ((), None)
    assert await status(engine, job_id) is Status.PENDING


async def test_a_child_that_expires_is_no_longer_waited_for(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    parent = await enqueue(engine)
    [running] = await claim(engine, worker)
    child = a_job(parent=parent, group="g", queue="other", expires_in=60)
    await engine.insert([child])
    await settle(engine, running, Snoozed(1_000.0, awaits=(AwaitedChildren(group="g", left=0),)))
    clock.advance(61)
    assert (await engine.expire(10)).ids == (child.id,)
    assert await engine.wake([parent]) == [parent]


async def test_many_kinds_in_one_insert(engine: Engine, clock: Clock) -> None:
    jobs = [
        a_job(),
        a_job(expires_in=10),
        a_job(lane="x", expires_in=10),
        a_job(lane="x"),
        a_job(key="k", expires_in=10),
        a_job(delay=5, expires_in=10),
        a_job(expires_in=1_000),
    ]
    await engine.insert(jobs)
    clock.advance(11)
    ended = set((await engine.expire(100)).ids)
    assert ended == {jobs[number].id for number in (1, 2, 4, 5)}
    # Repeating the insert brings none of them back.
    answers = await engine.insert(jobs)
    assert not any(answer.created for answer in answers)
    assert (await engine.expire(100)).ids == ()


async def test_an_expired_job_can_be_run_again(engine: Engine, clock: Clock) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, expires_in=10)
    clock.advance(11)
    await engine.expire(10)
    assert await engine.rerun([job_id]) == [job_id]
    assert (await engine.expire(10)).ids == ()
    [job] = await claim(engine, worker)
    assert job.id == job_id
    assert await complete(engine, job)


async def test_what_ended_early_leaves_nothing_behind_when_it_is_pruned(
    engine: Engine, clock: Clock
) -> None:
    worker = await a_worker(engine)
    await enqueue(engine, expires_in=1e6)
    [job] = await claim(engine, worker)
    await complete(engine, job)
    clock.advance(100)
    assert await engine.prune(older_than=10) == 1
    assert (await engine.expire(10)).next_in is None


async def test_several_callers_at_once_end_each_job_once(
    engine: Engine, open_another: Opener, clock: Clock
) -> None:
    jobs = [a_job(expires_in=10, lane=f"l{n % 7}" if n % 2 else None) for n in range(200)]
    await engine.insert(jobs)
    clock.advance(11)
    others = [engine, await open_another(), await open_another()]

    async def all_of(one: Engine) -> list[str]:
        ended: list[str] = []
        for _ in range(40):
            found = await one.expire(20)
            ended += found.ids
            if found.next_in is None:
                break
        return ended

    told = await asyncio.gather(*(all_of(one) for one in others))
    flat = [job_id for ended in told for job_id in ended]
    assert sorted(flat) == sorted(job.id for job in jobs)


async def test_claims_and_expiry_at_once_share_the_jobs(
    engine: Engine, open_another: Opener, clock: Clock
) -> None:
    """Each job is either leased or expired, whoever comes first."""
    jobs = [a_job(expires_in=0.2 + n / 1_000, lane="a" if n % 3 == 0 else None) for n in range(300)]
    await engine.insert(jobs)
    other = await open_another()
    worker = await a_worker(other)
    leased: set[str] = set()
    ended: set[str] = set()

    async def run() -> None:
        for _ in range(60):
            for job in await claim(other, worker, 5):
                leased.add(job.id)
                await complete(other, job)
            clock.advance(0.01)

    async def end() -> None:
        for _ in range(60):
            ended.update((await engine.expire(7)).ids)

    await asyncio.gather(run(), end())
    clock.advance(10)
    while (found := await engine.expire(100)).ids or found.next_in is not None:
        ended.update(found.ids)
    assert not leased & ended
    left = [job.id for job in jobs if job.id not in leased]
    assert {await status(engine, job_id) for job_id in left} <= {Status.CANCELLED}
    assert {await status(engine, job_id) for job_id in leased} <= {Status.COMPLETED}
