"""Fixtures for what only the Redis engine promises: own servers, and a plain connection."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headrace.clock import Clock
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.link import RedisConnection
from headrace.engine.redis.engine import RedisEngine
from tests.conftest import VERSIONS, Servers, store_url
from tests.support.servers import RedisServer, redis_binaries

REDISES = [name for name in VERSIONS if name.startswith("redis")]


class OwnServer(RedisServer):
    """A server for one test, with settings of its own."""

    def __init__(self, binary: Path, *settings: str, fsync: str = "everysec") -> None:
        super().__init__(binary, fsync=fsync, name="own-redis")
        self.settings = settings

    def command(self) -> list[str]:
        return [*super().command(), *self.settings]

    def ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    @property
    def store(self) -> str:
        return f"{self.url}?namespace=t{uuid4().hex[:8]}&timeout=2"


Starter = Callable[..., OwnServer]


@pytest.fixture(params=REDISES)
def redis_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def engine_url(redis_name: str, servers: Servers, tmp_path: Path) -> str:
    """A store on the shared server of each kind."""
    return store_url(redis_name, servers, tmp_path)


@pytest.fixture
def start_server(redis_name: str) -> Iterator[Starter]:
    """Starts servers that the test may harm."""
    started: list[OwnServer] = []

    def start(*settings: str, fsync: str = "everysec") -> OwnServer:
        server = OwnServer(redis_binaries()[redis_name], *settings, fsync=fsync)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.destroy()


@pytest.fixture
async def redis_engine(engine_url: str, clock: Clock) -> AsyncIterator[RedisEngine]:
    """An engine with its own face."""
    engine = RedisEngine(engine_url, clock=clock)
    await engine.open()
    yield engine
    assert await engine.audit() == []
    await engine.close()


@pytest.fixture
async def admin(engine_url: str) -> AsyncIterator[RedisConnection]:
    """A plain connection to the server, under another name than the engine's."""
    link = RedisConnection(RedisAddress.parse(engine_url))
    await link.call("CLIENT", "SETNAME", "admin")
    yield link
    await link.close()


async def connections(admin: RedisConnection, namespace: str) -> list[str]:
    """The ids of the connections that engines of this namespace hold on the server."""
    lines = (await admin.call("CLIENT", "LIST")).decode().splitlines()
    fields = [dict(part.partition("=")[::2] for part in line.split(" ")) for line in lines]
    return [each["id"] for each in fields if each["name"] == f"headrace:{namespace}"]


async def commands_of(engine: RedisEngine, life: Awaitable[object]) -> list[tuple[bool, list[str]]]:
    """What the server is told meanwhile, in its own words: whether by a script, and the command."""
    reader, writer = await asyncio.open_connection(
        engine.address.host, engine.address.port, limit=2**22
    )
    writer.write(b"MONITOR\r\n")
    assert (await reader.readline()).startswith(b"+OK")
    told: list[tuple[bool, list[str]]] = []

    async def listen() -> None:
        while line := (await reader.readline()).decode("utf-8", "replace"):
            words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
            if words[-1] == "the end":
                return
            told.append((" lua]" in line, words))

    listening = asyncio.create_task(listen())
    try:
        await life
        await engine._link.call("ECHO", "the end")
        await asyncio.wait_for(listening, 60)
    finally:
        listening.cancel()
        writer.close()
        await writer.wait_closed()
    return told


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Wait until something holds, but not for ever."""
    limit = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < limit:
        if await condition():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError(f"it did not come about within {seconds} s")
