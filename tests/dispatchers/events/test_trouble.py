"""The engine goes away, or the broker, and comes back: nothing is lost, nothing grows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from headrace.dispatchers.events.dispatcher import QueueDispatcher
from tests.dispatchers.events.conftest import Brokers
from tests.dispatchers.events.harness import KafkaTopic, RedisTopic
from tests.dispatchers.events.scene import Scene, numbered
from tests.support.processes import until
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    postgres_binaries,
    redis_binaries,
)

BATCH = 50


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that may be killed."""
    made = PostgresServer(postgres_binaries()["postgres"], durable=True)
    made.start()
    yield made
    made.destroy()


@pytest.fixture
async def mortal(
    server: PostgresServer, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    scene = Scene(f"{server.url}?schema=t{abs(hash(request.node.name))}", tmp_path)
    async with scene.app:
        yield scene
        assert await scene.app.engine.audit() == []


async def test_while_the_engine_is_away_messages_wait_at_the_broker(
    kafka: KafkaTopic, mortal: Scene, server: PostgresServer
) -> None:
    adapter = kafka.adapter(batch_size=BATCH)
    async with mortal.dispatcher(adapter, batch_size=BATCH, hold_seconds=0.5) as dispatcher:
        await kafka.send(numbered(100))
        await mortal.has_jobs(100)
        share = adapter._epoch
        server.kill()
        await kafka.send(numbered(2_000, start=100))
        await until(lambda: dispatcher.writers[0].failures >= 2, "trouble")
        await until(lambda: dispatcher.counts.held == 0, "that messages are given back")
        received = dispatcher.counts.received
        assert received <= 100 + 4 * BATCH
        assert await dispatcher.lag() == 2_000
        assert dispatcher.counts.received == received
        # It was away for longer than the session lasts, and is a member all the same.
        assert adapter._epoch == share
        server.start()
        await mortal.has_jobs(2_100)
        await until(lambda: _lag_is(dispatcher, 0), "the end of the lag")
    assert await mortal.numbers() == dict.fromkeys(range(2100), 1)


async def test_a_short_absence_is_waited_out_with_what_is_here(
    stream: RedisTopic, mortal: Scene, server: PostgresServer
) -> None:
    adapter = stream.adapter(batch_size=BATCH, claim_after_seconds=60)
    async with mortal.dispatcher(adapter, batch_size=BATCH, hold_seconds=60) as dispatcher:
        await stream.send(numbered(100))
        await mortal.has_jobs(100)
        server.kill()
        await stream.send(numbered(2_000, start=100))
        await until(lambda: dispatcher.writers[0].failures >= 2, "trouble")
        assert 0 < dispatcher.counts.held <= 4 * BATCH
        assert dispatcher.counts.received <= 100 + 4 * BATCH
        server.start()
        await mortal.has_jobs(2_100)
        await until(lambda: dispatcher.counts.held == 0, "the end")
        assert dispatcher.counts.received == 2_100
    assert await mortal.numbers() == dict.fromkeys(range(2100), 1)


async def test_a_server_that_allows_one_connection_gets_one(
    kafka: KafkaTopic, server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute("CREATE ROLE lonely LOGIN CONNECTION LIMIT 1")
    await connection.execute("GRANT CREATE ON DATABASE postgres TO lonely")
    await connection.close()
    lonely = Scene(f"{server.url.replace('postgres@', 'lonely@')}?schema=lonely", tmp_path)
    async with lonely.app, lonely.dispatcher(kafka.adapter()) as dispatcher:
        await kafka.send(numbered(200))
        await until(lambda: dispatcher.counts.stored == 200, "200 jobs")
        assert dispatcher.healthy
    assert "over one connection for now" in caplog.text


async def test_a_broker_that_is_away_is_waited_for(scene: Scene) -> None:
    broker = RedisServer(redis_binaries()["redis"], fsync="always")
    topic = RedisTopic(broker.url)
    try:
        async with scene.dispatcher(topic.adapter()) as dispatcher:
            await until(lambda: dispatcher.receiver.failures >= 1, "trouble")
            assert await dispatcher.lag() is None
            broker.start()
            await topic.open()
            await topic.send(numbered(10))
            await scene.has_jobs(10)
            broker.kill()
            await until(lambda: dispatcher.receiver.failures >= 1, "trouble again")
            broker.start()
            await topic.client.aclose()
            await topic.open()
            await topic.send(numbered(10, start=10))
            await scene.has_jobs(20)
        assert await scene.numbers() == dict.fromkeys(range(20), 1)
        await topic.close()
    finally:
        broker.destroy()


async def test_a_stop_does_not_wait_for_a_broker_that_is_gone(
    scene: Scene, brokers: Brokers
) -> None:
    broker = RedisServer(redis_binaries()["redis"])
    broker.start()
    topic = RedisTopic(broker.url)
    await topic.open()
    try:
        async with scene.dispatcher(topic.adapter()) as dispatcher:
            await topic.send(numbered(3))
            await until(lambda: dispatcher.counts.stored == 3, "3 jobs")
            broker.kill()
        assert not dispatcher.running
    finally:
        await topic.client.aclose()
        broker.destroy()


async def _lag_is(dispatcher: QueueDispatcher, expected: int) -> bool:
    return await dispatcher.lag() == expected
