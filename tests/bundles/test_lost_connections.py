"""Connections to tables in PostgreSQL that are lost while nobody uses them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Thread
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from headrace.bundles import connect
from headrace.bundles.tables import find_address
from tests.conftest import Servers, store_url

OWN = sa.text("SELECT pg_backend_pid()")
LIMIT_SECONDS = 20.0


@pytest.fixture
async def tables(servers: Servers, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """Tables with one connection."""
    url = store_url("postgres", servers, tmp_path)
    engine = connect.make_engine(find_address("shelf", None, url), 1)
    yield engine
    await engine.dispose()


async def backend(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(OWN)).scalar_one())


async def end(url: str, pid: int) -> None:
    """End a connection on the server, and wait until it has gone."""
    other = await asyncpg.connect(url)
    try:
        await other.execute("SELECT pg_terminate_backend($1, 10000)", pid)
    finally:
        await other.close()


async def test_one_that_the_server_has_closed_is_replaced_without_asking(
    tables: AsyncEngine, servers: Servers, tmp_path: Path
) -> None:
    async with tables.connect() as connection:
        first = int((await connection.execute(OWN)).scalar_one())
        raw: Any = (await connection.get_raw_connection()).driver_connection
    await end(store_url("postgres", servers, tmp_path).partition("?")[0], first)
    async with asyncio.timeout(LIMIT_SECONDS):
        while not raw.is_closed():  # noqa: ASYNC110 - the driver tells nobody
            await asyncio.sleep(0.01)
    assert await backend(tables) != first


async def test_one_that_idled_is_asked(
    tables: AsyncEngine, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "FRESH_SECONDS", 0.0)
    first = await backend(tables)
    url = store_url("postgres", servers, tmp_path).partition("?")[0]
    # This loop stands still meanwhile, so that the driver does not know yet.
    ending = Thread(target=lambda: asyncio.run(end(url, first)))
    ending.start()
    ending.join()
    assert await backend(tables) != first


async def test_one_that_was_used_just_now_is_not_asked(
    tables: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    do_ping = tables.dialect.do_ping

    def ask(connection: Any) -> bool:
        asked.append(connection)
        return bool(do_ping(connection))

    monkeypatch.setattr(tables.dialect, "do_ping", ask)
    first = await backend(tables)
    assert await backend(tables) == first
    assert not asked
    monkeypatch.setattr(connect, "FRESH_SECONDS", 0.0)
    assert await backend(tables) == first
    assert len(asked) == 1
