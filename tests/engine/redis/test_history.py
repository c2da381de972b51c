"""Finished jobs are kept in the order of time; who is run again leaves an old place behind."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.model.job import JobFilter
from headrace.model.status import Status
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue

EVERYTHING = JobFilter(statuses=(Status.COMPLETED,))


async def finish(engine: RedisEngine, worker: str, count: int = 1) -> None:
    for job in await claim(engine, worker, limit=count):
        assert await complete(engine, job)


async def finished(engine: RedisEngine) -> list[str]:
    return [job.id for job in (await engine.list_jobs(EVERYTHING, limit=100)).jobs]


async def test_a_job_that_was_run_again_counts_from_its_last_end(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    again, other = await enqueue(redis_engine), await enqueue(redis_engine)
    await finish(redis_engine, worker, 2)
    assert await redis_engine.rerun([again]) == [again]
    assert await redis_engine.audit() == []
    assert await redis_engine.prune(keep=1) == 0
    clock.advance(1)
    await finish(redis_engine, worker)
    assert await redis_engine.audit() == []
    assert await finished(redis_engine) == [other, again]
    assert await redis_engine.prune(keep=1) == 1
    assert await finished(redis_engine) == [again]
    assert await redis_engine.prune(older_than=0.5) == 0
    clock.advance(1)
    assert await redis_engine.prune(older_than=0.5) == 1
    assert await redis_engine.audit() == []


async def test_places_that_were_left_do_not_hide_what_comes_behind(
    redis_engine: RedisEngine, clock: Clock, admin: RedisConnection
) -> None:
    worker = await a_worker(redis_engine)
    first = await redis_engine.insert([a_job() for _ in range(1_200)])
    await finish(redis_engine, worker, 1_200)
    clock.advance(100)
    await enqueue(redis_engine)
    await finish(redis_engine, worker)
    await redis_engine.rerun([each.id for each in first])
    clock.advance(100)
    assert await redis_engine.prune(older_than=50, limit=10) == 1
    assert await admin.call("LLEN", redis_engine.key("finished")) == 0
    assert await redis_engine.audit() == []


async def test_an_audit_misses_a_job_that_nobody_would_prune(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine)
    await finish(redis_engine, worker)
    place = await admin.call("RPOP", redis_engine.key("finished"))
    [finding] = await redis_engine.audit()
    assert "1 jobs exist but 0 are in a line or finished" in finding.detail
    await admin.call("RPUSH", redis_engine.key("finished"), place)
