"""Stores on each engine for tests of applications. A server is started when the first asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from tests.support.objects import S3Server
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    postgres_binaries,
    redis_binaries,
)

ENGINES = ["sqlite", "postgres", "redis"]


class Stores:
    """Servers that live until `stop`."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}

    def url(self, engine: str, folder: Path) -> str:
        """Return a store that nobody else uses."""
        space = f"t{uuid4().hex[:12]}"
        if engine == "sqlite":
            return f"sqlite:///{folder}/{space}.db"
        if engine == "redis":
            made = self._server("redis", lambda: RedisServer(redis_binaries()["redis"], name="ap"))
            return f"{made.url}?namespace={space}"
        return f"{self.postgres()}?schema={space}"

    def postgres(self) -> str:
        """Return the address of the PostgreSQL server."""
        make = lambda: PostgresServer(postgres_binaries()["postgres"], name="ap")  # noqa: E731
        return self._server("postgres", make).url

    def tables(self) -> str:
        """Return a place for tables in PostgreSQL that nobody else uses."""
        return f"{self.postgres()}?schema=t{uuid4().hex[:12]}"

    def artifacts(self) -> tuple[str, dict[str, str]]:
        """Return a bucket that nobody else uses, and the environment that it takes."""
        server = self._server("s3", S3Server)
        assert isinstance(server, S3Server)
        return server.artifacts(f"t{uuid4().hex[:12]}"), server.environment()

    def stop(self) -> None:
        """End all servers."""
        for server in self._servers.values():
            server.destroy()

    def _server(self, name: str, make: Callable[[], Server]) -> Server:
        if name not in self._servers:
            server = make()
            server.start()
            self._servers[name] = server
        return self._servers[name]
