"""A real server over each engine, with a worker beside it, in a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

import headrace
from headrace.server.listen import listening
from tests.conftest import Servers, store_url
from tests.support.servers import free_port

T = TypeVar("T")

LIMIT = 60.0
# The worker serves this queue alone: jobs elsewhere stay pending.
SERVED = "default"


def make_app(url: str, artifacts: Path) -> headrace.App:
    app = headrace.App(url, artifacts=str(artifacts), payload_limit=100_000)

    @app.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @app.task(retries=0)
    async def broken(reason: str = "it broke") -> None:
        raise ValueError(reason)

    @app.task
    async def slow(ctx: headrace.Context, seconds: float = 60.0) -> str:
        ctx.progress(10, "sleeping")
        await asyncio.sleep(seconds)
        return "slept"

    @app.task(lane=headrace.Lane("user:{user}", width=2))
    async def mine(user: int) -> None: ...

    @app.task
    async def staged(ctx: headrace.Context) -> int:
        await ctx.artifacts.put("numbers 한.txt", b"1 2 3")
        return await ctx.stage("counting", count)

    @app.task
    async def ingest(file: str, language: str = "en") -> str:
        return f"{language}: {(artifacts / file).read_text()}"

    return app


async def count() -> int:
    return 7


async def eventually(look: Callable[[], Awaitable[T]], what: str) -> T:
    """Ask until the answer is worth something, and answer that."""
    end = time.monotonic() + LIMIT
    while not (found := await look()):
        assert time.monotonic() < end, f"{what} did not happen within {LIMIT:g} s"
        await asyncio.sleep(0.02)
    return found


class Served:
    """The server of one store. It can be stopped and started again on the same port."""

    def __init__(self, store: str, artifacts: Path) -> None:
        self.store = store
        self.artifacts = artifacts
        self.url = ""
        # One that nobody is given for a connection while the server is stopped.
        self._port = free_port()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self.app = make_app(store, artifacts)

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(ready),))
        self._thread.start()
        assert ready.wait(LIMIT), "the server did not start"

    def stop(self) -> None:
        if self._loop is not None and self._end is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(LIMIT)
            assert not self._thread.is_alive(), "the server did not stop"
            self._loop = None

    def call(self, verb: Coroutine[Any, Any, T]) -> T:
        """Do something to the App behind the server, on its own loop."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(verb, self._loop).result(LIMIT)

    async def acall(self, verb: Coroutine[Any, Any, T]) -> T:
        """The same from a test that has a loop."""
        assert self._loop is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(verb, self._loop))

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self.app = make_app(self.store, self.artifacts)
        worker = headrace.JobOrchestrator(self.app, queues=[SERVED], max_workers=4)
        async with self.app, listening(self.app, host="127.0.0.1", port=self._port) as url:
            self.url, self._port = url, int(url.rpartition(":")[2])
            async with worker:
                ready.set()
                await self._end.wait()
                await worker.stop(grace=0)


@contextlib.contextmanager
def serving(store: str, folder: Path) -> Iterator[Served]:
    served = Served(store, folder / "artifacts")
    served.start()
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def served(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Served]:
    """A server over each engine."""
    with serving(store_url(request.param, servers, tmp_path), tmp_path) as made:
        yield made


@pytest.fixture
def one_server(tmp_path: Path) -> Iterator[Served]:
    """A server over the embedded engine, for what does not depend on the engine."""
    with serving(f"sqlite:///{tmp_path}/jobs.db", tmp_path) as made:
        yield made
