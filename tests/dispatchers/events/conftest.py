"""Brokers for tests of events: each is started once, when the first test asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import Servers, store_url
from tests.dispatchers.events.harness import TOPICS, KafkaTopic, RedisTopic, Topic
from tests.dispatchers.events.own import OwnTopic
from tests.dispatchers.events.scene import Scene
from tests.support.brokers import (
    KafkaServer,
    NatsServer,
    RabbitmqServer,
    SqsServer,
    rabbitmq_home,
)
from tests.support.servers import Server


class Brokers:
    """Starts each broker once."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.running: dict[str, Server] = {}

    def url(self, name: str) -> str:
        if name == "redis":
            return self._servers.url("redis")
        if name not in self.running:
            server = self._make(name)
            server.start()
            self.running[name] = server
        return self.running[name].url

    def _make(self, name: str) -> Server:
        match name:
            case "kafka":
                return KafkaServer()
            case "nats":
                return NatsServer()
            case "sqs":
                return SqsServer()
        home = rabbitmq_home()
        assert home is not None
        return RabbitmqServer(home)


@pytest.fixture(scope="session")
def brokers(servers: Servers) -> Iterator[Brokers]:
    started = Brokers(servers)
    yield started
    for server in started.running.values():
        server.destroy()


needs_rabbitmq = pytest.mark.skipif(
    rabbitmq_home() is None,
    reason="rabbitmq-server is not on this machine; install it with: make programs",
)
NAMES = [pytest.param(name, marks=needs_rabbitmq if name == "rabbitmq" else ()) for name in TOPICS]


@pytest.fixture(params=[*NAMES, "own"])
async def topic(
    request: pytest.FixtureRequest, brokers: Brokers, tmp_path: Path
) -> AsyncIterator[Topic]:
    """A topic of one's own on each broker, and on the one that the documentation adds."""
    if request.param == "own":
        made: Topic = OwnTopic(str(tmp_path / "messages"))
    else:
        made = TOPICS[request.param](brokers.url(request.param))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def kafka(brokers: Brokers) -> AsyncIterator[KafkaTopic]:
    """A topic on Kafka."""
    made = KafkaTopic(brokers.url("kafka"))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def stream(brokers: Brokers) -> AsyncIterator[RedisTopic]:
    """A topic on the broker that is quickest to start with."""
    made = RedisTopic(brokers.url("redis"))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def scene(servers: Servers, tmp_path: Path) -> AsyncIterator[Scene]:
    """An App on a store of its own. When the test is over, the store's invariants must hold."""
    made = Scene(store_url("postgres", servers, tmp_path), tmp_path)
    async with made.app:
        yield made
        assert await made.app.engine.audit() == []


@pytest.fixture
async def kafka_of_eight(brokers: Brokers) -> AsyncIterator[KafkaTopic]:
    """A topic of eight partitions on Kafka."""
    made = KafkaTopic(brokers.url("kafka"))
    made.partitions = 8
    await made.open()
    yield made
    await made.close()
