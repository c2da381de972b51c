"""Jobs that have to start by a time, in Redis: their index, and that others do not pay for it."""

from __future__ import annotations

import pytest

from headrace.clock import Clock
from headrace.engine.redis import scripts
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.insert_policy import EXPIRED
from headrace.model.job import NewJob
from headrace.model.outcome import (
    Completed,
    Outcome,
    Released,
    Reserved,
    Retry,
    Settlement,
    Snoozed,
)
from headrace.model.status import Status
from headrace.model.views import RecordChange
from tests.engine.redis.conftest import commands_of
from tests.engine.redis.test_family import a_life_alone
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

A_DAY = 86_400.0
FLAG = 32


async def entries(engine: RedisEngine) -> set[str]:
    return {
        each.decode() for each in await engine._link.call("ZRANGE", engine.key("expiry"), 0, -1)
    }


def test_the_reason_is_that_of_the_model() -> None:
    assert f"'{EXPIRED}'" in scripts.script("expire").source
    assert f"'{EXPIRED}'" in scripts.script("exchange").source


async def test_jobs_without_a_time_never_reach_for_it(redis_engine: RedisEngine) -> None:
    """Although others have one."""
    await enqueue(redis_engine, delay=A_DAY, expires_in=2 * A_DAY)
    worker = await a_worker(redis_engine)

    async def life() -> None:
        await a_life_alone(redis_engine, worker)
        job_id = await enqueue(redis_engine)
        await redis_engine.get([job_id])
        await redis_engine.cancel([job_id])
        await redis_engine.rerun([job_id])

    told = await commands_of(redis_engine, life())
    by_scripts = [words for by_script, words in told if by_script]
    assert len(by_scripts) > 30
    key = redis_engine.key("expiry")
    assert [words for words in by_scripts if words[1:2] == [key]] == []


@pytest.mark.parametrize(
    "outcome", [Completed(), Retry(A_FAILURE, 5), Retry(A_FAILURE, 0), Snoozed(5)], ids=repr
)
async def test_who_has_started_is_forgotten(
    redis_engine: RedisEngine, clock: Clock, outcome: Outcome
) -> None:
    """A snoozed one has as many attempts behind it as one that never ran."""
    worker = await a_worker(redis_engine)
    job_id = await enqueue(redis_engine, lane="l", expires_in=60)
    [job] = await claim(redis_engine, worker)
    assert await entries(redis_engine) == {job_id}
    assert await settle(redis_engine, job, outcome)
    assert await entries(redis_engine) == set()
    clock.advance(61)
    assert (await redis_engine.expire(10)).ids == ()
    assert await status(redis_engine, job_id) is not Status.CANCELLED


async def test_who_is_cancelled_is_forgotten(redis_engine: RedisEngine) -> None:
    running = await enqueue(redis_engine, expires_in=60)
    worker = await a_worker(redis_engine)
    [job] = await claim(redis_engine, worker)
    ready = await enqueue(redis_engine, expires_in=60)
    await redis_engine.cancel([running, ready])
    assert await entries(redis_engine) == {running}
    assert await settle(redis_engine, job, Released())
    assert await entries(redis_engine) == set()
    assert await status(redis_engine, running) is Status.CANCELLED


@pytest.mark.parametrize("outcome", [Released(), Reserved()], ids=repr)
async def test_one_that_runs_is_put_aside_until_it_is_given_back(
    redis_engine: RedisEngine, clock: Clock, outcome: Outcome
) -> None:
    worker = await a_worker(redis_engine)
    job_id = await enqueue(redis_engine, lane="l", expires_in=60)
    behind = await enqueue(redis_engine, lane="l")
    [job] = await claim(redis_engine, worker)
    due = (await redis_engine.expire(10)).next_in
    assert due == pytest.approx(60, abs=5)
    clock.advance(61)
    for _ in range(2):
        found = await redis_engine.expire(10)
        assert (found.ids, found.next_in) == ((), None)
    assert (await the_job(redis_engine, job_id)).expires_at is None
    assert await settle(redis_engine, job, outcome)
    assert (await redis_engine.expire(0)).next_in == 0.0
    shown = (await the_job(redis_engine, job_id)).expires_at
    assert shown is not None
    assert shown.timestamp() == pytest.approx(await redis_engine.now() - 1, abs=5)
    [job] = await claim(redis_engine, worker, 5)
    assert job.id == behind
    assert await status(redis_engine, job_id) is Status.CANCELLED
    assert await entries(redis_engine) == set()


async def test_what_an_older_program_leaves_behind_is_forgotten(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    """It ends a job, or prunes it, and knows nothing of the time that it had to start by."""
    worker = await a_worker(redis_engine)
    ids = [await enqueue(redis_engine) for _ in range(3)]
    for job in await claim(redis_engine, worker, 3):
        await complete(redis_engine, job)
    for job_id in ids:
        record = bytearray(await redis_engine._link.call("HGET", redis_engine.key("jobs"), job_id))
        record[1] |= FLAG
        await redis_engine._link.call("HSET", redis_engine.key("jobs"), job_id, bytes(record))
    soon = await redis_engine.now() + 60
    pairs = [part for job_id in [*ids, "pruned"] for part in (soon, job_id)]
    await redis_engine._link.call("ZADD", redis_engine.key("expiry"), *pairs)
    assert await redis_engine.rerun(ids[:1]) == ids[:1]
    assert await entries(redis_engine) == {*ids[1:], "pruned"}
    assert await redis_engine.prune(keep=1) == 1
    assert await entries(redis_engine) == {ids[2], "pruned"}
    clock.advance(61)
    found = await redis_engine.expire(10)
    assert (found.ids, found.next_in) == ((), None)
    record = await redis_engine._link.call("HGET", redis_engine.key("jobs"), ids[2])
    assert not record[1] & FLAG
    # What it ended can be run again, and is then a job like others.
    assert await redis_engine.rerun(ids[2:]) == ids[2:]
    assert {job.id for job in await claim(redis_engine, worker, 5)} == {ids[0], ids[2]}


async def test_children_and_followers_have_a_time_too(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    parent = await enqueue(redis_engine)
    [job] = await claim(redis_engine, worker)

    def late(**fields: object) -> NewJob:
        return a_job(**{"expires_in": 10, "queue": "other", **fields})

    jobs = [late(parent=parent, group="g"), late(), late(parent=parent), late(parent=parent)]
    await redis_engine.insert(jobs[:1])
    await redis_engine.insert(jobs[1:2], record=RecordChange("kind", "key", b"1"))
    follow = (jobs[2], jobs[3])
    await redis_engine.exchange([Settlement(job.id, job.token, Completed(), follow=follow)])
    assert await entries(redis_engine) == {job.id for job in jobs}
    clock.advance(11)
    assert set((await redis_engine.expire(10)).ids) == {job.id for job in jobs}
    assert await redis_engine.audit() == []


async def test_a_claim_ends_a_bounded_number_and_has_somebody_come_again(
    redis_engine: RedisEngine, admin: RedisConnection, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    await redis_engine.insert([a_job(expires_in=10, priority=5) for _ in range(1_200)])
    good = await enqueue(redis_engine)
    clock.advance(11)

    async def first() -> None:
        assert await claim(redis_engine, worker, 20) == []

    told = await commands_of(redis_engine, first())
    signals = redis_engine.key("signals")
    assert [words for _, words in told if words == ["PUBLISH", signals, "work"]]
    left = await admin.call("ZCARD", redis_engine.key("expiry"))
    assert 1_200 - 520 <= left <= 1_200 - 500
    assert await claim(redis_engine, worker, 20) == []
    [job] = await claim(redis_engine, worker, 20)
    assert job.id == good


async def test_a_place_that_a_late_job_leaves_is_taken_by_the_same_claim(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    """Also in a lane that is so wide that its heads are counted."""
    worker = await a_worker(redis_engine)
    late = [a_job(lane="wide", width=30, expires_in=10) for _ in range(30)]
    await redis_engine.insert(late)
    good = [a_job(lane="wide", width=30) for _ in range(40)]
    await redis_engine.insert(good)
    clock.advance(11)
    claimed = await claim(redis_engine, worker, 50)
    assert [job.id for job in claimed] == [job.id for job in good[:30]]
    assert await redis_engine.audit() == []
    for job in claimed:
        await complete(redis_engine, job)
    assert len(await claim(redis_engine, worker, 50)) == 10


async def test_a_reserved_job_that_is_late_is_not_claimed(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine, tasks=("work",))
    late = await enqueue(redis_engine, expires_in=10)
    [job] = await claim(redis_engine, worker)
    assert await settle(redis_engine, job, Reserved())
    good = await enqueue(redis_engine)
    clock.advance(11)
    assert [job.id for job in await claim(redis_engine, worker, 5)] == [good]
    assert await status(redis_engine, late) is Status.CANCELLED
