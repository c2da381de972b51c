"""A broker that is silent, on connections that look open: it is noticed, told, and left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from chaos.proxy import Proxy

from headrace.dispatchers.events.adapters import nats, redis_streams
from tests.dispatchers.events.conftest import Brokers
from tests.dispatchers.events.harness import TOPICS
from tests.dispatchers.events.scene import Scene, numbered
from tests.support.processes import until


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    made = Proxy(0)
    await made.start()
    yield made
    made.heal()
    await made.close()


@pytest.mark.parametrize(
    ("name", "option", "url"),
    [
        ("redis", "url", "redis://127.0.0.1:{port}/0"),
        ("nats", "servers", "nats://127.0.0.1:{port}"),
    ],
)
async def test_a_connection_that_died_silently_is_given_up(  # noqa: PLR0917 - fixtures
    name: str,
    option: str,
    url: str,
    brokers: Brokers,
    scene: Scene,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis_streams, "ASK_MS", 100)
    monkeypatch.setattr(redis_streams, "SILENT_SECONDS", 2.0)
    monkeypatch.setattr(nats, "PING_SECONDS", 1.0)
    topic = TOPICS[name](brokers.url(name))
    await topic.open()
    proxy.target = int(topic.url.rpartition(":")[2].partition("/")[0])
    through: dict[str, Any] = {option: url.format(port=proxy.port)}
    async with scene.dispatcher(topic.adapter(**through)) as dispatcher:
        await topic.send(numbered(5))
        await scene.has_jobs(5)
        proxy.block("requests", "replies")
        await until(lambda: dispatcher.receiver.failures >= 1, "that it is noticed")
        assert not dispatcher.receiver.connected
        await topic.send(numbered(5, start=5))
        # The old connections never come back.
        proxy.reset()
        proxy.unblock()
        await scene.has_jobs(10)
    await topic.close()
