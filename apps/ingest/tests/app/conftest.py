"""The bundle on each engine: one server and one worker for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ingest_support.running import Running
from tests.support.objects import S3Server
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    free_port,
    postgres_binaries,
    redis_binaries,
)

ENGINES = ["sqlite", "postgres"]


class Stores:
    """Stores on each engine. The server is started when the first test asks for it."""

    def __init__(self) -> None:
        self.server: PostgresServer | None = None
        self.redis: RedisServer | None = None
        self.files: S3Server | None = None
        self._count = 0

    def url(self, engine: str, folder: Path) -> str:
        """Return a store that nobody else uses."""
        self._count += 1
        if engine == "sqlite":
            return f"sqlite:///{folder}/jobs.db"
        if engine == "redis":
            if self.redis is None:
                self.redis = RedisServer(redis_binaries()["redis"], name="ingest-app")
                self.redis.start()
            return f"{self.redis.url}?namespace=s{self._count}"
        if self.server is None:
            self.server = PostgresServer(postgres_binaries()["postgres"], name="ingest-app")
            self.server.start()
        return f"{self.server.url}?schema=s{self._count}"

    def bucket(self) -> S3Server:
        """Return a server for files."""
        if self.files is None:
            self.files = S3Server()
            self.files.start()
        return self.files


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    made = Stores()
    yield made
    for server in (made.server, made.redis, made.files):
        if server is not None:
            server.destroy()


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def running(
    engine: str, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A server and a worker."""
    folder = tmp_path_factory.mktemp(f"ingest-{engine}")
    made = Running(folder, stores.url(engine, folder), free_port())
    try:
        made.start_server()
        made.start_worker()
        yield made
    finally:
        made.stop()
