"""The connection for long answers: there while it is needed, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from headrace.engine.bounded_reads import PART_BYTES
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from headrace.errors import EngineUnavailable
from tests.engine.redis.conftest import connections
from tests.support.verbs import a_worker, claim, complete, enqueue

LIMIT = 60.0


async def finished(engine: RedisEngine, size: int) -> str:
    job_id = await enqueue(engine)
    [job] = await claim(engine, await a_worker(engine))
    await complete(engine, job, b'"' + b"x" * size + b'"')
    return job_id


async def no_more_than(count: int, engine: RedisEngine, admin: RedisConnection) -> None:
    """Wait until the server knows of so many connections at most."""
    namespace = engine.address.namespace
    async with asyncio.timeout(LIMIT):
        while len(await connections(admin, namespace)) > count:  # noqa: ASYNC110 - on the server
            await asyncio.sleep(0.01)


async def test_short_results_need_no_second_connection(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    job_id = await finished(redis_engine, 10_000)
    before = len(await connections(admin, redis_engine.address.namespace))
    await redis_engine.get_part([job_id], PART_BYTES)
    assert len(await connections(admin, redis_engine.address.namespace)) == before


async def test_the_connection_for_long_results_closes_when_it_is_idle_and_opens_again(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    job_id = await finished(redis_engine, 500_000)
    before = len(await connections(admin, redis_engine.address.namespace))
    for _ in range(2):
        redis_engine._large.idle_seconds = 3600.0
        await redis_engine.get_part([job_id], PART_BYTES)
        assert len(await connections(admin, redis_engine.address.namespace)) == before + 1
        redis_engine._large.idle_seconds = 0.0
        await redis_engine.get_part([job_id], PART_BYTES)
        await no_more_than(before, redis_engine, admin)


async def test_closing_the_engine_closes_the_connection_for_long_results(
    redis_engine: RedisEngine, admin: RedisConnection
) -> None:
    job_id = await finished(redis_engine, 500_000)
    await redis_engine.get_part([job_id], PART_BYTES)
    await redis_engine.close()
    await no_more_than(0, redis_engine, admin)
    with pytest.raises(EngineUnavailable, match="the engine is closed"):
        await redis_engine._large.call("PING")
    assert redis_engine._large._timer is None
    await redis_engine.open()


async def test_a_call_that_ends_while_the_engine_closes_leaves_no_timer_behind(
    redis_engine: RedisEngine,
) -> None:
    await redis_engine._large.call("PING")
    under_way = asyncio.create_task(redis_engine._large.call("PING"))
    async with asyncio.timeout(LIMIT):
        while redis_engine._large._users == 0:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        await redis_engine.close()
        assert await under_way == b"PONG"
    assert redis_engine._large._timer is None
    await redis_engine.open()
