"""Jobs that follow from an outcome: they exist if and only if it counted."""

from __future__ import annotations

import asyncio
import math

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob, NewJob
from headrace.model.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retry,
    Settlement,
    Snoozed,
    TimedOut,
)
from headrace.model.status import Status
from tests.engine.conftest import Opener
from tests.support.verbs import A_FAILURE, a_job, a_worker, claim, enqueue, status, the_job

FINAL_OR_NOT: list[Outcome] = [
    Completed(b"2"),
    Retry(A_FAILURE, 60),
    Failed(A_FAILURE),
    TimedOut(A_FAILURE),
    Cancelled(),
    Released(),
    Snoozed(60),
]


def completed(job: ClaimedJob, *follow: NewJob) -> Settlement:
    return Settlement(job.id, job.token, Completed(), follow=follow)


async def running(engine: Engine, **fields: object) -> ClaimedJob:
    worker = await a_worker(engine)
    await enqueue(engine, **fields)
    [job] = await claim(engine, worker)
    return job


@pytest.mark.parametrize("outcome", FINAL_OR_NOT, ids=lambda each: type(each).__name__)
async def test_they_are_stored_with_whatever_outcome(engine: Engine, outcome: Outcome) -> None:
    job = await running(engine)
    next_one = a_job(task="next", queue="other", args=b'{"n":1}', priority=3, meta=b'{"m":1}')
    settlement = Settlement(job.id, job.token, outcome, follow=(next_one,))
    assert (await engine.exchange([settlement])).refused == ()
    stored = await the_job(engine, next_one.id)
    assert stored.status is Status.PENDING
    assert (stored.task, stored.queue, stored.args, stored.priority) == (
        "next",
        "other",
        {"n": 1},
        3,
    )
    assert stored.meta_json == b'{"m":1}'


async def test_an_outcome_that_does_not_count_has_no_followers(engine: Engine) -> None:
    job = await running(engine)
    stale, late = a_job(), a_job()
    answer = await engine.exchange(
        [Settlement(job.id, job.token + 1, Completed(), follow=(stale,))]
    )
    assert answer.refused == (job.id,)
    assert (await engine.exchange([completed(job)])).refused == ()
    assert (await engine.exchange([completed(job, late)])).refused == (job.id,)
    assert await engine.get([stale.id, late.id]) == []


async def test_of_two_outcomes_of_one_attempt_only_the_first_has_followers(engine: Engine) -> None:
    job = await running(engine)
    first, second = a_job(), a_job()
    answer = await engine.exchange([completed(job, first), completed(job, second)])
    assert answer.refused == (job.id,)
    assert [each.id for each in await engine.get([first.id, second.id])] == [first.id]


async def test_a_call_that_is_repeated_stores_them_once(engine: Engine) -> None:
    job = await running(engine)
    follow = a_job()
    assert (await engine.exchange([completed(job, follow)])).refused == ()
    worker = await a_worker(engine, "another")
    [claimed] = await claim(engine, worker)
    assert claimed.id == follow.id
    assert (await engine.exchange([completed(job, follow)])).refused == (job.id,)
    assert await claim(engine, worker) == []
    assert await status(engine, follow.id) is Status.RUNNING


async def test_one_that_exists_already_is_not_stored_again(engine: Engine) -> None:
    job = await running(engine)
    by_id = a_job(task="by id")
    [_] = await engine.insert([by_id])
    by_key = await enqueue(engine, task="by key", key="k")
    other = a_job(task="by key", key="k")
    new = a_job()
    assert (await engine.exchange([completed(job, by_id, other, new)])).refused == ()
    found = {each.id for each in await engine.get([by_id.id, by_key, other.id, new.id])}
    assert found == {by_id.id, by_key, new.id}
    assert await status(engine, job.id) is Status.COMPLETED


async def test_a_key_that_a_follower_takes_is_taken(engine: Engine) -> None:
    job = await running(engine)
    follow = a_job(task="once", key="k")
    await engine.exchange([completed(job, follow)])
    [again] = await engine.insert([a_job(task="once", key="k")])
    assert (again.id, again.created) == (follow.id, False)


async def test_they_keep_their_order_and_go_through_lanes(engine: Engine) -> None:
    job = await running(engine, lane="l")
    worker = await a_worker(engine, "another")
    waiting = await enqueue(engine, lane="l")
    follow = [a_job(lane="l") for _ in range(3)]
    await engine.exchange([completed(job, *follow)])
    for expected in [waiting, *(each.id for each in follow)]:
        [claimed] = await claim(engine, worker, 10)
        assert claimed.id == expected
        await engine.exchange([completed(claimed)])


async def test_a_lane_is_never_wider_by_them(engine: Engine) -> None:
    job = await running(engine, lane="a")
    worker = await a_worker(engine, "another")
    holder = await enqueue(engine, lane="b")
    [held] = await claim(engine, worker, 10)
    assert held.id == holder
    follow = [a_job(lane="b"), a_job(lane="b")]
    await engine.exchange([completed(job, *follow)])
    assert await claim(engine, worker, 10) == []
    await engine.exchange([completed(held)])
    assert [each.id for each in await claim(engine, worker, 10)] == [follow[0].id]


async def test_a_delay_counts_from_the_outcome(engine: Engine, clock: Clock) -> None:
    job = await running(engine)
    follow = a_job(delay=60.0)
    await engine.exchange([completed(job, follow)])
    assert await status(engine, follow.id) is Status.SCHEDULED
    clock.advance(61)
    assert (await engine.promote_due(10)).moved == 1
    assert await status(engine, follow.id) is Status.PENDING


async def test_settlements_of_one_call_do_not_disturb_each_other(engine: Engine) -> None:
    worker = await a_worker(engine)
    for _ in range(4):
        await enqueue(engine)
    one, two, three, four = await claim(engine, worker, 4)
    follow = [a_job() for _ in range(3)]
    answer = await engine.exchange(
        [
            completed(one, follow[0]),
            Settlement(two.id, two.token + 1, Completed(), follow=(follow[1],)),
            completed(three, follow[2]),
            completed(four),
        ],
        worker_id=worker,
        limit=10,
    )
    assert answer.refused == (two.id,)
    stored = {each.id for each in await engine.get([each.id for each in follow])}
    assert stored == {follow[0].id, follow[2].id}
    for each in (one, three, four):
        assert await status(engine, each.id) is Status.COMPLETED


async def test_followers_that_cannot_be_stored_make_their_outcome_impossible(
    engine: Engine,
) -> None:
    worker = await a_worker(engine)
    await enqueue(engine)
    await enqueue(engine)
    bad, good = await claim(engine, worker, 2)
    impossible, follow = a_job(id="no id at all"), a_job()
    answer = await engine.exchange([completed(bad, impossible), completed(good, follow)])
    assert answer.refused == (bad.id,)
    assert await status(engine, bad.id) is Status.RUNNING
    assert await status(engine, good.id) is Status.COMPLETED
    assert len(await engine.get([follow.id])) == 1


async def test_a_delay_without_end_is_stored(engine: Engine) -> None:
    job = await running(engine)
    follow = a_job(delay=math.inf)
    assert (await engine.exchange([completed(job, follow)])).refused == ()
    assert await status(engine, follow.id) is Status.SCHEDULED


async def test_idle_workers_hear_of_them(engine: Engine, open_another: Opener) -> None:
    job = await running(engine)
    other = await open_another()
    heard = asyncio.Event()
    stop = await other.listen(heard.set, lambda _: None)
    try:
        await engine.exchange([completed(job, a_job())])
        await asyncio.wait_for(heard.wait(), 60)
    finally:
        stop()


async def test_many_at_once(engine: Engine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job() for _ in range(50)])
    jobs = await claim(engine, worker, 50)
    follow = [[a_job(task="next") for _ in range(20)] for _ in jobs]
    answer = await engine.exchange(
        [completed(job, *each) for job, each in zip(jobs, follow, strict=True)]
    )
    assert answer.refused == ()
    ids = [each.id for group in follow for each in group]
    assert len(await engine.get(ids)) == 1_000
