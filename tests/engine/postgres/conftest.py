"""What only PostgreSQL has to prove, on every version that is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.postgres.connection.address import Address, parse_address
from headrace.engine.postgres.engine import PostgresEngine
from tests.conftest import Servers, store_url
from tests.engine.conftest import Opener
from tests.support.servers import postgres_binaries

Raw = Any
"""An asyncpg connection. Only its stubs are generic, so the name cannot be used for both."""


@pytest.fixture(params=list(postgres_binaries()))
def engine_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    """A URL of a store that nobody else uses."""
    new = "new_store" in request.keywords
    return store_url(request.param, servers, tmp_path, new=new)


@pytest.fixture
def address(engine_url: str) -> Address:
    return parse_address(engine_url)


@pytest.fixture
async def postgres(engine: Engine) -> PostgresEngine:
    """The empty engine, by its own class."""
    assert isinstance(engine, PostgresEngine)
    return engine


@pytest.fixture
async def raw(address: Address, engine: Engine) -> AsyncIterator[Raw]:
    """A connection of a stranger to the same database."""
    connection = await asyncpg.connect(address.dsn)
    yield connection
    await connection.close()


__all__ = ["Clock", "Opener", "Raw"]
