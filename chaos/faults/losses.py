"""What Redis may lose, as its documentation and ours say: measured, and counted apart.

These belong to a variant of a run, in which the server acknowledges before its data is safe. When
it comes back, its state is an earlier one: jobs that came later are gone, and outcomes that were
recorded later are undone.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

from chaos.faults.base import Fault
from chaos.faults.fail_over import until
from chaos.faults.servers import KillServer
from chaos.proxy import Proxy
from chaos.stores import RedisStore

VARIANT = "everysec"


class RedisLoss(Fault):
    """Something after which Redis may have less than it has acknowledged."""

    engines = ("redis",)
    group = "server"
    variant = VARIANT

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers

    @property
    def store(self) -> RedisStore:
        """The server."""
        assert isinstance(self.scene.store, RedisStore)
        return self.scene.store

    async def end(self) -> None:
        await self.store.ensure_up()


class KillEverySecond(KillServer):
    """SIGKILL of a server whose file is synced every second."""

    name = "kill server with everysec"
    engines = ("redis",)
    variant = VARIANT


class PowerCut(RedisLoss):
    """The server is killed, and its file is cut back to what it was a second ago: what it may not
    have synced when the power went. A real power cut cannot be had here.
    """

    name = "power cut with everysec"
    UNSYNCED = 1.0

    async def begin(self) -> None:
        folder = self.store.server.folder
        sizes: list[tuple[float, dict[Path, int]]] = []
        end = time.monotonic() + 2 * self.UNSYNCED
        while time.monotonic() < end:
            sizes.append((time.monotonic(), sizes_of(folder)))
            await asyncio.sleep(0.02)
        await self.store.kill()
        cut = time.monotonic() - self.UNSYNCED
        kept = [each for at, each in sizes if at <= cut][-1]
        for path, size in kept.items():
            os.truncate(path, size)


class RedisFailOver(RedisLoss):
    """A replica that is behind is promoted after the primary was killed."""

    name = "fail-over to late replica"

    def draw(self, chance: random.Random) -> None:
        super().draw(chance)
        self.behind = chance.uniform(0.05, 0.5)

    async def begin(self) -> None:
        store = self.store
        old = store.server
        line = Proxy(old.port)
        await line.start()
        replica = store.new_server()
        await asyncio.to_thread(replica.start)
        try:
            await store.ask("REPLICAOF", "127.0.0.1", line.port, port=replica.port)
            await until(lambda: self._in_step(replica.port))
            line.delay = self.behind
            await asyncio.sleep(1.0)
            await store.kill()
            store.server = replica
            await store.ask("REPLICAOF", "NO", "ONE")
        except BaseException:
            if store.server is old:
                replica.destroy()
            raise
        finally:
            await line.close()
        self.scene.move_lines()
        await self.scene.reopen_app()
        await asyncio.to_thread(old.destroy)

    async def _in_step(self, port: int) -> bool:
        facts = await self.store.ask("INFO", "replication", port=port)
        return bool(facts.get("master_link_status") == "up")


def sizes_of(folder: Path) -> dict[Path, int]:
    """The parts of the append-only file that grow, and how long they are."""
    return {path: path.stat().st_size for path in folder.glob("appendonlydir/*.incr.aof")}


FAULTS = (KillEverySecond, PowerCut, RedisFailOver)
