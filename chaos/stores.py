"""The stores that faults happen to: a file, or a real server of this run's own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import asyncpg
import psutil  # type: ignore[import-untyped]
import redis.asyncio
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    postgres_binaries,
    redis_binaries,
)

ENGINES = ("sqlite", "postgres", "redis")
UP_SECONDS = 30.0


class Store:
    """Where the jobs of a run live. `port` is None where there is no server."""

    engine: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def port(self) -> int | None:
        """The server's port now; another one after a fail-over."""
        return None

    def url(self, port: int | None = None) -> str:
        """The store, straight or through a proxy's port."""
        raise NotImplementedError

    async def start(self) -> None:
        """Make it ready for programs."""

    async def ensure_up(self) -> None:
        """Start the server again if it has ended, and let it go on if it was stopped."""

    def destroy(self) -> None:
        """End it and remove its data."""


class SqliteStore(Store):
    engine = "sqlite"

    @property
    def path(self) -> Path:
        return self.folder / "chaos.db"

    def url(self, port: int | None = None) -> str:
        return f"sqlite:///{self.path}"

    def hold_lock(self) -> sqlite3.Connection:
        """Be the one writer of the file until the connection is closed."""
        connection = sqlite3.connect(
            self.path, timeout=2, isolation_level=None, check_same_thread=False
        )
        connection.execute("BEGIN IMMEDIATE")
        return connection


class ServerStore(Store):
    """A server with a port, which can be killed, frozen and started again."""

    server: Server

    @property
    def port(self) -> int:
        return self.server.port

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)

    async def ensure_up(self) -> None:
        self.thaw()
        limit = time.monotonic() + UP_SECONDS
        while time.monotonic() < limit:
            process = self.server.process
            if process is None or process.poll() is not None:
                await self.kill()  # its children may have outlived it
                await asyncio.to_thread(self.server.start)
            if await asyncio.to_thread(self.server.ready):
                return
            await asyncio.sleep(0.05)

    def family(self) -> list[psutil.Process]:
        """The server's process and its children."""
        process = self.server.process
        if process is None:
            return []
        try:
            parent = psutil.Process(process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    async def kill(self) -> None:
        """End all its processes without warning, and wait until they are gone.

        A process of PostgreSQL that outlives its parent must not write beside the next one.
        """
        family = self.family()
        for process in family:
            _signal(process, signal.SIGKILL)
        await asyncio.to_thread(self.server.kill)
        await asyncio.to_thread(psutil.wait_procs, family, 10)

    def freeze(self) -> None:
        """Stop all its processes as a machine that hangs would; new ones are not made."""
        for process in self.family():
            _signal(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        for process in self.family():
            _signal(process, signal.SIGCONT)

    async def end_clients(self) -> int:
        """End every connection on the server's side. Answers how many."""
        raise NotImplementedError

    def destroy(self) -> None:
        family = self.family()
        for process in family:
            _signal(process, signal.SIGKILL)
        psutil.wait_procs(family, 10)
        self.server.destroy()


class PostgresStore(ServerStore):
    engine = "postgres"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server: PostgresServer = self.new_server()

    def new_server(self, copy_of: PostgresServer | None = None) -> PostgresServer:
        """An empty server, or a standby of another."""
        binaries = postgres_binaries()["postgres"]
        return PostgresServer(
            binaries, durable=True, name="chaos", within=self.folder, copy_of=copy_of
        )

    def url(self, port: int | None = None) -> str:
        return f"postgresql://postgres@127.0.0.1:{port or self.server.port}/postgres"

    async def end_clients(self) -> int:
        rows = await self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return len(rows)

    async def ask(self, statement: str, *values: Any) -> list[Any]:
        """One statement on a connection of its own."""
        connection = await asyncpg.connect(self.url(), timeout=10)
        try:
            return list(await connection.fetch(statement, *values, timeout=10))
        finally:
            with contextlib.suppress(OSError, asyncpg.PostgresError, TimeoutError):
                await connection.close(timeout=2)


class RedisStore(ServerStore):
    engine = "redis"

    def __init__(self, folder: Path, *, fsync: str = "always") -> None:
        super().__init__(folder)
        self.fsync = fsync
        self.server: RedisServer = self.new_server()

    def new_server(self) -> RedisServer:
        """An empty server."""
        return RedisServer(
            redis_binaries()["redis"], fsync=self.fsync, name="chaos", within=self.folder
        )

    def url(self, port: int | None = None) -> str:
        return f"redis://127.0.0.1:{port or self.server.port}/0"

    async def end_clients(self) -> int:
        ended = 0
        for kind in ("normal", "pubsub"):
            ended += int(await self.ask("CLIENT", "KILL", "TYPE", kind))
        return ended

    async def ask(self, *command: Any, port: int | None = None) -> Any:
        """One command on a connection of its own, also to another server."""
        client = redis.asyncio.Redis.from_url(self.url(port), socket_timeout=10)
        try:
            return await client.execute_command(*command)  # type: ignore[no-untyped-call]
        finally:
            with contextlib.suppress(OSError, redis.RedisError):
                await client.aclose()


def open_store(engine: str, folder: Path, *, fsync: str = "always") -> Store:
    """The store of a run, not started yet."""
    match engine:
        case "sqlite":
            return SqliteStore(folder)
        case "postgres":
            return PostgresStore(folder)
        case _:
            return RedisStore(folder, fsync=fsync)


def _signal(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
