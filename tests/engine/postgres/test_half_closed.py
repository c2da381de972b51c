"""A server that takes leave of a connection that nobody is using."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

import pytest

from headrace.clock import Clock
from headrace.engine.postgres.engine import PostgresEngine
from tests.engine.postgres.conftest import Raw
from tests.support.verbs import enqueue, the_job


class Line:
    """Passes on all that the server says, but not that it has hung up."""

    def __init__(self, host: str, port: int) -> None:
        self._there = (host, port)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self.hung_up = asyncio.Event()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(*self._there)
        self._writers += [writer, to_server]
        for source, target in ((reader, to_server), (from_server, writer)):
            task = asyncio.create_task(self._pass_on(source, target))
            self._tasks.add(task)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        self.hung_up.set()

    async def cut(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@pytest.fixture
async def line(engine_url: str) -> AsyncIterator[Line]:
    """On the way to the server, to a place of its own."""
    there = urlsplit(engine_url)
    assert there.hostname is not None
    assert there.port is not None
    line = Line(there.hostname, there.port)
    async with await asyncio.start_server(line.take, "127.0.0.1", 0) as server:
        line.port = server.sockets[0].getsockname()[1]
        try:
            yield line
        finally:
            await line.cut()


@pytest.fixture
async def behind(line: Line, engine_url: str) -> AsyncIterator[PostgresEngine]:
    there = urlsplit(engine_url)
    at = there.netloc.replace(f":{there.port}", f":{line.port}")
    engine = PostgresEngine(urlunsplit(there._replace(netloc=at)), clock=Clock())
    await engine.open()
    yield engine
    await engine.close()


async def test_a_connection_that_the_server_has_ended_is_not_used_again(
    line: Line, behind: PostgresEngine, raw: Raw
) -> None:
    await enqueue(behind)
    [(pid,)] = await raw.fetch(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace common'"
        " AND query LIKE '%insert%' ORDER BY backend_start DESC LIMIT 1"
    )
    assert await raw.fetchval("SELECT pg_terminate_backend($1)", pid)
    async with asyncio.timeout(20):
        await line.hung_up.wait()
        job_id = await enqueue(behind)
        assert (await the_job(behind, job_id)).id == job_id
    await line.cut()
