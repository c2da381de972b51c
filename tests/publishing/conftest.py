"""An App that publishes, and receivers of its events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from tests.conftest import ENGINES, Servers, store_url
from tests.dispatchers.events.conftest import brokers  # noqa: F401 - a fixture
from tests.publishing.receiver import Receiver, a_receiver

PROCESSED = "document.processed.v1"


class Processed(msgspec.Struct):
    """What is told of a document."""

    document: str
    chunks: int = 0


def publishing(url: str, clock: Clock | None = None, **settings: Any) -> headrace.App:
    """An App that declares one type of events, and may send to loopback."""
    app = headrace.App(url, clock=clock, allow_private_webhooks=True, **settings)
    app.event_type(PROCESSED, Processed, summary="A document is searchable.")
    return app


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def local(tmp_path: Path, clock: Clock) -> AsyncIterator[headrace.App]:
    async with publishing(f"sqlite:///{tmp_path}/here.db", clock) as app:
        yield app
        assert await app.engine.audit() == []


@pytest.fixture(params=ENGINES)
async def app(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path, clock: Clock
) -> AsyncIterator[headrace.App]:
    async with publishing(store_url(request.param, servers, tmp_path), clock) as app:
        yield app
        assert await app.engine.audit() == []


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with a_receiver() as made:
        yield made


async def work(app: headrace.App) -> None:
    """Run everything that is due."""
    await headrace.JobOrchestrator(app).run_until_idle()
