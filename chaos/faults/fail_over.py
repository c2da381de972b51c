"""Another server takes the place of the one that died."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable

from chaos.faults.base import Fault
from chaos.stores import PostgresStore

LIMIT = 15.0


class FailOver(Fault):
    """PostgreSQL: a synchronous standby is promoted after the primary was killed. What was
    acknowledged is on both, so nothing may be lost.
    """

    name = "fail-over"
    engines = ("postgres",)
    group = "server"
    weight = 0.5

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        self.seconds = chance.uniform(0.0, 0.5)

    @property
    def store(self) -> PostgresStore:
        """The server."""
        assert isinstance(self.scene.store, PostgresStore)
        return self.scene.store

    async def begin(self) -> None:
        store = self.store
        old = store.server
        standby = await asyncio.to_thread(store.new_server, old)
        try:
            await asyncio.to_thread(standby.start)
            # From here on a commit is answered when the standby has it on disk as well.
            await store.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await store.ask("SELECT pg_reload_conf()")
            await until(self._in_step)
        except BaseException:
            with contextlib.suppress(Exception):
                await self._alone()
            standby.destroy()
            raise
        await store.kill()
        store.server = standby
        await store.ask("SELECT pg_promote(true)")
        self.scene.move_lines()
        await self.scene.reopen_app()
        await asyncio.to_thread(old.destroy)

    async def _alone(self) -> None:
        """Wait for no standby any more."""
        await self.store.ask("ALTER SYSTEM RESET synchronous_standby_names")
        await self.store.ask("SELECT pg_reload_conf()")

    async def _in_step(self) -> bool:
        rows = await self.store.ask("SELECT sync_state FROM pg_stat_replication")
        return any(row[0] in ("sync", "quorum") for row in rows)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds."""
    end = time.monotonic() + LIMIT
    while not await condition():
        if time.monotonic() > end:
            raise TimeoutError("the replica did not come into step")
        await asyncio.sleep(0.05)


FAULTS = (FailOver,)
