"""Stores of all three kinds together. The PostgreSQL and the Redis server may be killed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headrace.engine.open import open_engine
from headrace.engine.several.engine import SeveralStores
from tests.support.servers import PostgresServer, RedisServer, postgres_binaries, redis_binaries


class Trio:
    """The default store is a file, queue "mail" is in PostgreSQL, and "media-*" in Redis."""

    def __init__(self, postgres: PostgresServer, redis: RedisServer, folder: Path) -> None:
        self.postgres = postgres
        self.redis = redis
        space = f"t{uuid4().hex[:12]}"
        self.url = f"sqlite:///{folder}/default.db"
        self.stores = {
            "mail": f"{postgres.url}?schema={space}",
            "media-*": f"{redis.url}?namespace={space}",
        }

    def engine(self) -> SeveralStores:
        engine = open_engine(self.url, stores=self.stores)
        assert isinstance(engine, SeveralStores)
        return engine


@pytest.fixture(scope="module")
def own_servers() -> Iterator[tuple[PostgresServer, RedisServer]]:
    postgres = PostgresServer(postgres_binaries()["postgres"], name="several")
    redis = RedisServer(redis_binaries()["redis"], name="several")
    postgres.start()
    redis.start()
    yield postgres, redis
    postgres.destroy()
    redis.destroy()


@pytest.fixture
def trio(own_servers: tuple[PostgresServer, RedisServer], tmp_path: Path) -> Iterator[Trio]:
    postgres, redis = own_servers
    yield Trio(postgres, redis, tmp_path)
    for server in (postgres, redis):
        if not server.ready():
            server.start()


@pytest.fixture
async def stores(trio: Trio) -> AsyncIterator[SeveralStores]:
    """Open. When the test is over, the invariants of all stores that answer must hold."""
    engine = trio.engine()
    await engine.open()
    yield engine
    assert await engine.audit() == []
    await engine.close()
