"""A reply that takes longer than the time-out to arrive, over a slow line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from chaos.proxy import Proxy

from headrace.clock import Clock
from headrace.engine.redis.engine import RedisEngine
from headrace.errors import EngineUnavailable
from tests.support.verbs import a_worker, claim, complete, enqueue, the_job

LIMIT = 60.0


@pytest.fixture
async def line(engine_url: str) -> AsyncIterator[Proxy]:
    """A line to the server that a test makes slow, or breaks."""
    proxy = Proxy(urlsplit(engine_url).port or 0)
    await proxy.start()
    yield proxy
    proxy.heal()
    await proxy.close()


@pytest.fixture
async def far(engine_url: str, line: Proxy, clock: Clock) -> AsyncIterator[RedisEngine]:
    """The engine behind that line; it waits a second for an answer."""
    port = urlsplit(engine_url).port
    url = engine_url.replace(f":{port}", f":{line.port}")
    engine = RedisEngine(f"{url}&timeout=1", clock=clock)
    await engine.open()
    yield engine
    line.heal()
    await engine.close()


async def test_a_reply_that_arrives_slowly_is_waited_for(
    redis_engine: RedisEngine, far: RedisEngine, line: Proxy
) -> None:
    worker = await a_worker(redis_engine)
    job_id = await enqueue(redis_engine)
    [job] = await claim(redis_engine, worker)
    result = b'"' + b"x" * 600_000 + b'"'
    await complete(redis_engine, job, result)
    line.rate = 200_000
    found = await asyncio.wait_for(the_job(far, job_id), LIMIT)
    assert found.result_json == result


async def test_a_server_that_falls_silent_within_a_reply_is_given_up(
    redis_engine: RedisEngine, far: RedisEngine, line: Proxy
) -> None:
    worker = await a_worker(redis_engine)
    job_id = await enqueue(redis_engine)
    [job] = await claim(redis_engine, worker)
    await complete(redis_engine, job, b'"' + b"x" * 600_000 + b'"')
    line.rate = 200_000
    asked = asyncio.create_task(the_job(far, job_id))
    async with asyncio.timeout(LIMIT):
        wire = await far._link.wire()
        heard = wire._last_heard
        while wire._last_heard == heard:  # noqa: ASYNC110 - nothing tells of bytes
            await asyncio.sleep(0.01)
    line.block("replies")
    with pytest.raises(EngineUnavailable, match="no answer within 1 s"):
        await asyncio.wait_for(asked, LIMIT)
