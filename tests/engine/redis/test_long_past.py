"""What came and went costs upkeep little: the server is told what it is asked to do."""

from __future__ import annotations

from collections import Counter

from headrace.clock import Clock
from headrace.engine.redis.engine import RedisEngine
from headrace.model.outcome import Completed, Settlement
from tests.engine.redis.conftest import commands_of
from tests.support.verbs import a_job, a_worker, claim, enqueue

HOUR = 3_600.0
DAY = 86_400.0
MANY = 1_200


async def use_many_queues(engine: RedisEngine) -> None:
    worker = await a_worker(engine)
    await engine.insert([a_job(queue=f"once-{n:04}") for n in range(MANY)])
    while jobs := await claim(engine, worker, 500):
        await engine.exchange([Settlement(job.id, job.token, Completed()) for job in jobs])


async def looks_at_queues(engine: RedisEngine, pruned: int, *, limit: int = 100) -> int:
    """How often a step of `prune` has the server go through known queues, a part at a time."""

    async def prune() -> None:
        assert await engine.prune(older_than=-10, limit=limit) == pruned

    told = await commands_of(engine, prune())
    return Counter(words[0].upper() for by_script, words in told if by_script)["HSCAN"]


async def names(engine: RedisEngine) -> list[str]:
    return [queue.name for queue in await engine.queues()]


async def test_queues_are_not_looked_at_while_there_are_jobs_to_prune(
    redis_engine: RedisEngine,
) -> None:
    await use_many_queues(redis_engine)
    assert await looks_at_queues(redis_engine, pruned=100) == 0
    assert await looks_at_queues(redis_engine, pruned=MANY - 100, limit=MANY) >= 2


async def test_queues_are_not_looked_at_before_one_can_be_forgotten(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    await use_many_queues(redis_engine)
    await redis_engine.prune(older_than=-10, limit=2 * MANY)
    clock.advance(HOUR)
    assert await looks_at_queues(redis_engine, pruned=0) == 0
    clock.advance(DAY - HOUR)
    assert len(await names(redis_engine)) == MANY
    clock.advance(10)
    assert await looks_at_queues(redis_engine, pruned=0) >= 2
    assert await names(redis_engine) == []


async def test_a_queue_that_still_has_a_job_is_looked_at_again_within_an_hour(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    worker = await a_worker(redis_engine)
    await enqueue(redis_engine, queue="slow")
    clock.advance(DAY + 10)
    await redis_engine.prune(older_than=None)
    assert await looks_at_queues(redis_engine, pruned=0) == 0
    [job] = await claim(redis_engine, worker)
    await redis_engine.exchange([Settlement(job.id, job.token, Completed())])
    assert await names(redis_engine) == ["slow"]
    clock.advance(HOUR + 10)
    await redis_engine.prune(older_than=None)
    assert await names(redis_engine) == []


async def test_a_clock_that_was_ahead_does_not_put_the_next_look_off(
    redis_engine: RedisEngine, clock: Clock
) -> None:
    await enqueue(redis_engine, queue="ahead", delay=1_000 * DAY)
    clock.offset = 100 * DAY
    await redis_engine.prune(older_than=None)
    clock.offset = 0.0
    assert await looks_at_queues(redis_engine, pruned=0) == 1
