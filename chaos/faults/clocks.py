"""Clocks that are wrong."""

from __future__ import annotations

import random

from chaos import clocks
from chaos.clocks import Clocks
from chaos.faults.base import ALL, SERVERS, Fault


class WallClock(Fault):
    """The wall clock of one worker is off by up to an hour, either way. Servers have their own
    time; with SQLite the machine's is the engine's, so there this is left out.
    """

    name = "worker clock"
    engines = SERVERS
    group = "clock"

    def draw(self, chance: random.Random) -> None:
        self.victims = [chance.choice(self.scene.workers)]
        self.wrong = Clocks(wall=chance.choice([-1, 1]) * chance.uniform(5, 3_600))
        self.seconds = chance.uniform(1.0, 4.0)

    async def begin(self) -> None:
        for each in self.victims:
            clocks.write(self.scene.clock_file(each), self.wrong)

    async def end(self) -> None:
        for each in self.victims:
            clocks.write(self.scene.clock_file(each), Clocks())


class EngineClock(WallClock):
    """The engine's clock jumps forward by more than a lease, or back, as all workers see it."""

    name = "engine clock"
    engines = ALL
    weight = 0.7

    def draw(self, chance: random.Random) -> None:
        self.victims = self.scene.workers
        self.wrong = Clocks(engine=chance.choice([chance.uniform(3, 6), -chance.uniform(1, 3)]))
        self.seconds = chance.uniform(0.3, 2.0)


FAULTS = (WallClock, EngineClock)
