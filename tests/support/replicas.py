"""Two PostgreSQL servers of which one follows the other."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from tests.support.processes import until
from tests.support.servers import PostgresServer, postgres_binaries


class Pair:
    """A primary and its standby, by streaming replication. What is acknowledged is on both if it is
    synchronous.
    """

    def __init__(self, *, synchronous: bool) -> None:
        self.synchronous = synchronous
        self.primary = PostgresServer(postgres_binaries()["postgres"], name="primary")
        self.standby: PostgresServer | None = None

    @property
    def url(self) -> str:
        """Both, the standby last."""
        assert self.standby is not None
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{hosts}/postgres"

    async def start(self) -> None:
        """Start both, and wait until the standby follows."""
        await asyncio.to_thread(self.primary.start)
        binaries = postgres_binaries()["postgres"]
        self.standby = await asyncio.to_thread(
            lambda: PostgresServer(binaries, name="standby", copy_of=self.primary)
        )
        await asyncio.to_thread(self.standby.start)
        if self.synchronous:
            await ask(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            await ask(self.primary, "SELECT pg_reload_conf()")
        wanted = ("sync", "quorum") if self.synchronous else ("async",)

        async def follows() -> bool:
            rows = await ask(self.primary, "SELECT sync_state FROM pg_stat_replication")
            return any(row[0] in wanted for row in rows)

        await until(follows, "a standby that follows")

    async def promote(self) -> None:
        """Make the standby take writes."""
        assert self.standby is not None
        await ask(self.standby, "SELECT pg_promote(true)")

    def destroy(self) -> None:
        for server in (self.standby, self.primary):
            if server is not None:
                server.destroy()


async def ask(server: PostgresServer, statement: str) -> list[Any]:
    """Run one statement on a server."""
    connection = await asyncpg.connect(server.url)
    try:
        return list(await connection.fetch(statement))
    finally:
        await connection.close()
