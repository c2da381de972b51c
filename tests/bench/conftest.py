"""A store that nobody else uses, and an App on it whose calls are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

import headrace
from headrace.clock import Clock
from headrace.engine.open import Migrate, open_engine
from tests.bench.counting import Counted
from tests.conftest import ENGINES, Servers, store_url

Making = Callable[..., headrace.App]
LIMIT = 30.0


@pytest.fixture(params=ENGINES)
async def store(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[str]:
    """The URL of an empty store with its schema; on PostgreSQL in a database of its own, because
    that is what transactions are counted by.
    """
    name: str = request.param
    if not name.startswith("postgres"):
        url = store_url(name, servers, tmp_path)
        await _prepared(url)
        yield url
        return
    server, database = servers.url(name), f"b{uuid4().hex[:12]}"
    await _execute(server, f"CREATE DATABASE {database}")
    url = f"{server.rpartition('/')[0]}/{database}"
    await _prepared(url)
    yield url
    await _execute(server, f"DROP DATABASE {database} WITH (FORCE)")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[headrace.App], Counted]:
    """Every App that is made from now on counts; answers an App's counter."""

    def opened(url: str, *, clock: Clock | None = None, migrate: Migrate = "auto") -> Counted:
        return Counted(open_engine(url, clock=clock, migrate=migrate))

    monkeypatch.setattr("headrace.app_lifecycle.open_engine", opened)

    def counter(app: headrace.App) -> Counted:
        assert isinstance(app.engine, Counted)
        return app.engine

    return counter


async def until(condition: Callable[[], object | Awaitable[object]], what: str) -> None:
    """Wait for a condition, with a limit."""
    end = asyncio.get_running_loop().time() + LIMIT
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return
        assert asyncio.get_running_loop().time() < end, f"{what}: not within {LIMIT:g} s"
        await asyncio.sleep(0.005)


async def _prepared(url: str) -> None:
    engine = open_engine(url)
    await engine.open()
    await engine.close()


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
