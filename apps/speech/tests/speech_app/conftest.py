"""The bundle on each engine: SQLite alone, PostgreSQL with a real S3 server, Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from speech_support.making import Made, made
from speech_support.speech_server import SpeechServer, a_speech_server
from tests.support.objects import S3Server
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    postgres_binaries,
    redis_binaries,
)

ENGINES = ["sqlite", "postgres", "redis"]

Make = Callable[..., AbstractAsyncContextManager[Made]]


class Stores:
    """Stores on each engine. A server is started when the first test asks for it."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}

    def url(self, engine: str, folder: Path) -> str:
        """Return a store that nobody else uses."""
        space = f"t{uuid4().hex[:12]}"
        if engine == "sqlite":
            return f"sqlite:///{folder}/{space}.db"
        if engine == "redis":
            redis = self._server("redis", lambda: RedisServer(redis_binaries()["redis"], name="sp"))
            return f"{redis.url}?namespace={space}"
        make = lambda: PostgresServer(postgres_binaries()["postgres"], name="sp")  # noqa: E731
        return f"{self._server('postgres', make).url}?schema={space}"

    def artifacts(self, engine: str, folder: Path) -> tuple[str, dict[str, str]]:
        """Return where files go, and the environment that it takes: a bucket beside PostgreSQL."""
        if engine != "postgres":
            return str(folder / "files"), {}
        server = self._server("s3", S3Server)
        assert isinstance(server, S3Server)
        return server.artifacts(f"t{uuid4().hex[:12]}"), server.environment()

    def stop(self) -> None:
        for server in self._servers.values():
            server.destroy()

    def _server(self, name: str, make: Callable[[], Server]) -> Server:
        if name not in self._servers:
            server = make()
            server.start()
            self._servers[name] = server
        return self._servers[name]


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    started = Stores()
    yield started
    started.stop()


@pytest.fixture
def server() -> Iterator[SpeechServer]:
    with a_speech_server() as started:
        yield started


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(
    engine: str,
    stores: Stores,
    server: SpeechServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Make:
    """Opens an App with the bundle; every call is another one on the same store."""
    artifacts, environment = stores.artifacts(engine, tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    url = stores.url(engine, tmp_path)

    def open_one(**more: Any) -> AbstractAsyncContextManager[Made]:
        given = {"openai_url": server.url, "openai_key": "k"} | more
        return made(url, tmp_path, artifacts=artifacts, **given)

    return open_one
