"""Servers that die, stand still, or throw their clients out."""

from __future__ import annotations

import asyncio
import random

from chaos.faults.base import SERVERS, Fault
from chaos.stores import ServerStore


class ServerFault(Fault):
    """Something that happens to the server."""

    engines = SERVERS
    group = "server"

    @property
    def store(self) -> ServerStore:
        """The server."""
        assert isinstance(self.scene.store, ServerStore)
        return self.scene.store


class KillServer(ServerFault):
    """SIGKILL to all of its processes, and a start on what it has on disk."""

    name = "kill server"
    weight = 1.5

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        short = chance.random() < 0.7
        self.seconds = chance.uniform(0.0, 1.0) if short else self.longer_than_lease()

    async def begin(self) -> None:
        await self.store.kill()

    async def end(self) -> None:
        await self.store.ensure_up()


class FreezeServer(ServerFault):
    """SIGSTOP to all of its processes."""

    name = "freeze server"

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        short = chance.random() < 0.5
        self.seconds = chance.uniform(0.2, 2.0) if short else self.longer_than_lease()

    async def begin(self) -> None:
        self.store.freeze()

    async def end(self) -> None:
        self.store.thaw()


class TerminateStorm(ServerFault):
    """Every connection is ended by the server, several times in a row."""

    name = "terminate storm"
    weight = 3

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        self.pauses = [chance.uniform(0.02, 0.3) for _ in range(chance.randint(1, 6))]

    async def begin(self) -> None:
        for pause in self.pauses:
            await self.store.end_clients()
            await asyncio.sleep(pause)


FAULTS = (KillServer, FreezeServer, TerminateStorm)
