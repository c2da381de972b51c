"""Disks that are full, files that are locked or gone."""

from __future__ import annotations

import asyncio
import random
import sqlite3

from chaos import volume
from chaos.faults.base import ALL, Fault
from chaos.scene import Scene
from chaos.stores import SqliteStore


class FullDisk(Fault):
    """No room is left where the store's data is. A server may end for it, and is started again."""

    name = "full disk"
    engines = ALL
    group = "server"
    weight = 0.7

    @classmethod
    def fits(cls, scene: Scene) -> bool:
        return super().fits(scene) and volume.is_own(scene.place)

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        self.room = chance.choice([0, 4_096, 65_536, 262_144])
        short = chance.random() < 0.6
        self.seconds = chance.uniform(0.3, 2.0) if short else self.longer_than_lease()

    async def begin(self) -> None:
        await asyncio.to_thread(volume.fill, self.scene.place, self.room)

    async def end(self) -> None:
        await asyncio.to_thread(volume.widen, self.scene.place)
        await self.scene.store.ensure_up()


class HeldLock(Fault):
    """Another program is in the middle of a write to the file."""

    name = "file locked"
    engines = ("sqlite",)
    group = "server"
    weight = 2

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        self.lock: sqlite3.Connection | None = None
        short = chance.random() < 0.7
        self.seconds = chance.uniform(0.1, 2.0) if short else self.longer_than_lease()

    async def begin(self) -> None:
        store = self.scene.store
        assert isinstance(store, SqliteStore)
        self.lock = await asyncio.to_thread(store.hold_lock)

    async def end(self) -> None:
        if self.lock is not None:
            self.lock.close()


FAULTS = (FullDisk, HeldLock)
