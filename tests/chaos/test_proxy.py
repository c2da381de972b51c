"""The proxy breaks lines as it is told to, and only those."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from chaos.proxy import Proxy

from tests.support.processes import until

SOON = 0.2
LIMIT = 10.0


class Echo:
    """A server that answers what it is sent, and remembers it."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.served: list[asyncio.Task[None]] = []

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.served.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(100):
                self.heard += data
                writer.write(data)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@pytest.fixture
async def echo() -> Echo:
    return Echo()


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[Proxy]:
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1])
    await proxy.start()
    yield proxy
    await proxy.close()
    await asyncio.gather(*echo.served)
    server.close()


Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Connected]]


@pytest.fixture
async def connect(proxy: Proxy) -> AsyncIterator[Connect]:
    """Makes connections through the proxy, which are closed in the end."""
    made: list[Connected] = []

    async def connection() -> Connected:
        made.append(await asyncio.open_connection("127.0.0.1", proxy.port))
        return made[-1]

    yield connection
    for _, writer in made:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def silent(reader: asyncio.StreamReader) -> bool:
    """Whether nothing comes for a while."""
    try:
        await asyncio.wait_for(reader.read(1), SOON)
    except TimeoutError:
        return True
    return False


async def test_a_good_line_passes_everything_on(proxy: Proxy, connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(b"ping")
    assert await asyncio.wait_for(reader.readexactly(4), LIMIT) == b"ping"


async def test_a_cut_reply_was_asked_for_and_ends_its_connection(
    proxy: Proxy, connect: Connect, echo: Echo
) -> None:
    proxy.cuts = 1
    reader, writer = await connect()
    writer.write(b"once")
    with pytest.raises(asyncio.IncompleteReadError):
        await asyncio.wait_for(reader.readexactly(4), LIMIT)
    assert echo.heard == b"once"
    reader, writer = await connect()
    writer.write(b"more")
    assert await asyncio.wait_for(reader.readexactly(4), LIMIT) == b"more"


async def test_a_half_open_line_carries_requests_and_no_replies(
    proxy: Proxy, connect: Connect, echo: Echo
) -> None:
    reader, writer = await connect()
    proxy.block("replies")
    writer.write(b"deaf")
    await until(lambda: echo.heard == b"deaf", "the request")
    assert await silent(reader)
    proxy.heal()
    assert await asyncio.wait_for(reader.readexactly(4), LIMIT) == b"deaf"


async def test_a_black_hole_carries_nothing_until_it_heals(
    proxy: Proxy, connect: Connect, echo: Echo
) -> None:
    reader, writer = await connect()
    proxy.block("requests", "replies")
    writer.write(b"hole")
    assert await silent(reader)
    assert echo.heard == b""
    proxy.heal()
    assert await asyncio.wait_for(reader.readexactly(4), LIMIT) == b"hole"


async def test_a_reset_ends_connections_and_new_ones_may_be_turned_away(
    proxy: Proxy, connect: Connect
) -> None:
    reader, writer = await connect()
    writer.write(b"ping")
    await asyncio.wait_for(reader.readexactly(4), LIMIT)
    proxy.refusing = True
    proxy.reset()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), LIMIT)
    reader, writer = await connect()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), LIMIT)


async def test_a_slow_line_is_late(proxy: Proxy, connect: Connect) -> None:
    proxy.delay = SOON
    reader, writer = await connect()
    began = asyncio.get_running_loop().time()
    writer.write(b"late")
    assert await asyncio.wait_for(reader.readexactly(4), LIMIT) == b"late"
    assert asyncio.get_running_loop().time() - began >= 2 * SOON
