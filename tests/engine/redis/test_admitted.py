"""When a job was admitted to its lane: kept beside its record, and as long as the job."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.outcome import Retry
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import A_FAILURE, a_worker, claim, complete, enqueue, settle, the_job


async def admitted(admin: RedisConnection, engine: RedisEngine) -> set[str]:
    # One field is there so that the hash is a table; see migrate.lua.
    fields = await admin.call("HKEYS", engine.key("admitted"))
    return {field.decode() for field in fields if field}


async def test_it_is_forgotten_with_the_job(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine, lane="l")
    second = await enqueue(redis_engine, lane="l")
    assert await admitted(admin, redis_engine) == set()
    for _ in range(2):
        [job] = await claim(redis_engine, worker)
        await complete(redis_engine, job)
        assert await admitted(admin, redis_engine) == {second}
    assert await redis_engine.prune(keep=0) == 2
    assert await admitted(admin, redis_engine) == set()


async def test_who_finds_a_free_place_when_it_becomes_due_has_not_waited(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    job_id = await enqueue(redis_engine, lane="l", delay=5.0, hold=False)
    clock.advance(10)
    await redis_engine.promote_due(10)
    assert (await the_job(redis_engine, job_id)).admitted_at is None
    [job] = await claim(redis_engine, worker)
    await settle(redis_engine, job, Retry(A_FAILURE, 0))
    assert (await the_job(redis_engine, job_id)).admitted_at is None


async def test_who_lost_a_place_to_a_better_one_is_admitted_again(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine, lane="l")
    job_id = await enqueue(redis_engine, lane="l")
    [job] = await claim(redis_engine, worker)
    await complete(redis_engine, job)
    first = (await the_job(redis_engine, job_id)).admitted_at
    assert first is not None
    await enqueue(redis_engine, lane="l", priority=5)
    clock.advance(10)
    [job] = await claim(redis_engine, worker)
    assert job.priority == 5
    await complete(redis_engine, job)
    again = (await the_job(redis_engine, job_id)).admitted_at
    assert again is not None
    assert again > first


async def test_jobs_without_a_lane_cost_no_command_more(redis_engine: RedisEngine) -> None:
    worker = await a_worker(redis_engine)

    async def life() -> None:
        job_id = await enqueue(redis_engine)
        [job] = await claim(redis_engine, worker)
        await complete(redis_engine, job)
        await redis_engine.get([job_id])

    key = redis_engine.key("admitted")
    told = await commands_of(redis_engine, life())
    assert not [words for by_script, words in told if by_script and words[1:2] == [key]]
