"""A reply that takes longer than the time-out to arrive, over a slow line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from chaos.proxy import Proxy

from headrace.engine.postgres.connection.address import parse_address
from headrace.engine.postgres.connection.connection import Link
from headrace.engine.postgres.connection.connector import Connector
from headrace.errors import EngineUnavailable

LIMIT = 60.0
TIMEOUT = 1.0
LONG = "SELECT repeat('x', 600000)"


@pytest.fixture
async def line(engine_url: str) -> AsyncIterator[Proxy]:
    """A line to the server that a test makes slow, or breaks."""
    proxy = Proxy(urlsplit(engine_url).port or 0)
    await proxy.start()
    yield proxy
    proxy.heal()
    await proxy.close()


@pytest.fixture
async def far(engine_url: str, line: Proxy) -> AsyncIterator[Link]:
    """A connection over that line, open; it waits a second for an answer."""
    port = urlsplit(engine_url).port
    address = parse_address(engine_url.replace(f":{port}", f":{line.port}"))
    link = Link(Connector(address), "far", timeout=TIMEOUT)
    await link.fetch("SELECT 1")
    yield link
    line.heal()
    await link.shut()


async def test_a_reply_that_arrives_slowly_is_waited_for(far: Link, line: Proxy) -> None:
    line.rate = 200_000
    loop = asyncio.get_running_loop()
    began = loop.time()
    [(found,)] = await asyncio.wait_for(far.fetch(LONG), LIMIT)
    assert len(found) == 600_000
    assert loop.time() - began > TIMEOUT


async def test_the_connection_is_as_before_after_a_slow_reply(far: Link, line: Proxy) -> None:
    [(server,)] = await far.fetch("SELECT pg_backend_pid()")
    driver = far._connection._transport.get_protocol()  # type: ignore[union-attr]
    line.rate = 200_000
    await asyncio.wait_for(far.fetch(LONG), LIMIT)
    line.heal()
    assert await far.fetch("SELECT pg_backend_pid()") == [(server,)]
    assert far._connection._transport.get_protocol() is driver  # type: ignore[union-attr]


async def test_a_server_that_falls_silent_within_a_reply_is_given_up(
    far: Link, line: Proxy
) -> None:
    line.rate = 200_000
    asked = asyncio.create_task(far.fetch(LONG))
    async with asyncio.timeout(LIMIT):
        while (  # noqa: ASYNC110 - nothing tells of bytes
            far._deadline._listener is None or far._deadline._listener.heard is None
        ):
            await asyncio.sleep(0.01)
    line.block("replies")
    with pytest.raises(EngineUnavailable):
        await asyncio.wait_for(asked, LIMIT)


async def test_a_statement_at_which_the_server_works_for_too_long_is_given_up(far: Link) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(EngineUnavailable):
        await asyncio.wait_for(far.fetch("SELECT pg_sleep(20)"), LIMIT)
    # Not before its time, and long before the server is done.
    assert TIMEOUT <= loop.time() - began < 10 * TIMEOUT
