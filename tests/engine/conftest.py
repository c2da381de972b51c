"""The conformance suite's fixtures: an empty store on each engine, and a second door to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from tests.conftest import VERSIONS, Servers, store_url
from tests.support.pgbouncer import PgBouncer

# HEADRACE_TEST_POOLER=transaction runs all of it on PostgreSQL behind PgBouncer, or =session.
POOLER = os.environ.get("HEADRACE_TEST_POOLER", "")

Opener = Callable[[], Awaitable[Engine]]


@pytest.fixture(params=VERSIONS)
def engine_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    """A URL of a store that nobody else uses."""
    new = "new_store" in request.keywords
    url = store_url(request.param, servers, tmp_path, new=new)
    if POOLER and request.param == "postgres":
        bouncer: PgBouncer = request.getfixturevalue("pooler")
        signals = "pooler=session"
        if POOLER == "transaction":
            signals = f"listen=127.0.0.1:{servers.running['postgres'].port}"
        return f"{bouncer.in_front_of(url)}&{signals}"
    return url


@pytest.fixture(scope="session")
def pooler(servers: Servers) -> Iterator[PgBouncer]:
    """In front of PostgreSQL, if that is asked for."""
    servers.url("postgres")
    bouncer = PgBouncer(servers.running["postgres"].port, POOLER)
    bouncer.start()
    yield bouncer
    bouncer.destroy()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def open_another(engine_url: str, clock: Clock) -> AsyncIterator[Opener]:
    """Opens further engines on the same store, as other processes would, on the same clock."""
    opened: list[Engine] = []

    async def opener() -> Engine:
        engine = open_engine(engine_url, clock=clock)
        await engine.open()
        opened.append(engine)
        return engine

    yield opener
    for engine in opened:
        await engine.close()


@pytest.fixture
async def engine(open_another: Opener) -> AsyncIterator[Engine]:
    """An empty engine. When the test is over, its invariants must hold."""
    engine = await open_another()
    yield engine
    assert await engine.audit() == []
