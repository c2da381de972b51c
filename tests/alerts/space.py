"""An engine that is filled for real, and freed again, as an operator of it would do it."""

from __future__ import annotations

import asyncio
import base64
import os
import sqlite3
from typing import Any

import asyncpg
import msgspec
import redis

import headrace
from tests.support.verbs import enqueue

MEGABYTE = 10**6
JOBS, JOB_BYTES = 40, 300_000
# What else happens meanwhile needs far less, and the jobs together twice as much.
MARGIN = 8 * MEGABYTE


class Space:
    """The room of one engine. Redis gets a limit of its memory, which is taken away again."""

    def __init__(self, app: headrace.App, url: str) -> None:
        self._app = app
        self._url = url.partition("?")[0]
        self.kind = url.partition(":")[0]
        self._jobs: list[str] = []

    async def rule(self) -> dict[str, Any]:
        """Return a threshold that is not reached now."""
        used = await self._used()
        if self.kind != "redis":
            return {"above": used + MARGIN}
        await self._limit(used + 4 * MARGIN)
        return {"free_below": 3 * MARGIN}

    async def fill(self) -> None:
        """Store large jobs that nobody runs."""
        for _ in range(JOBS):
            # Random, since PostgreSQL compresses other texts.
            text = base64.b64encode(os.urandom(JOB_BYTES)).decode()
            args = msgspec.json.encode({"text": text})
            self._jobs.append(await enqueue(self._app.engine, task="fine", queue="bulk", args=args))

    async def free(self) -> None:
        """Cancel them, prune, and let the engine give back what it does not need."""
        engine = self._app.engine
        await engine.cancel(self._jobs)
        while await engine.prune(older_than=0.0, keep=None, limit=100):
            pass
        if self.kind == "sqlite":
            await asyncio.to_thread(self._vacuum_sqlite)
        elif self.kind == "postgresql":
            await self._vacuum_postgres()

    async def close(self) -> None:
        """Leave the server as it was."""
        if self.kind == "redis":
            await self._limit(0)

    async def _used(self) -> int:
        space = (await self._app.engine.report()).space
        assert space is not None
        return space.used_bytes

    async def _limit(self, memory: int) -> None:
        def limit() -> None:
            with redis.Redis.from_url(self._url) as client:
                client.config_set("maxmemory", memory)

        await asyncio.to_thread(limit)

    def _vacuum_sqlite(self) -> None:
        connection = sqlite3.connect(self._url.removeprefix("sqlite:///"), timeout=60)
        try:
            connection.execute("VACUUM")
            busy = 1
            while busy:  # as long as somebody reads from the log
                [(busy, _, _)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.close()

    async def _vacuum_postgres(self) -> None:
        schema = self._app.engine.address.schema  # type: ignore[attr-defined]
        connection = await asyncpg.connect(self._url)
        try:
            tables = await connection.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema
            )
            for (table,) in tables:
                await connection.execute(f'VACUUM FULL "{schema}"."{table}"')
        finally:
            await connection.close()
