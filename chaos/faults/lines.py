"""Lines between programs and the server: cut, silent, deaf, slow."""

from __future__ import annotations

import asyncio
import random

from chaos.faults.base import SERVERS, Fault
from chaos.proxy import Proxy
from chaos.scene import Program


class LineFault(Fault):
    """Some programs' lines: of workers, producers, or all."""

    engines = SERVERS
    group = "lines"

    def draw(self, chance: random.Random) -> None:
        scene = self.scene
        places: list[Program]
        if chance.random() < 0.15:
            places = self.some(scene.producers)
        else:
            places = self.some(scene.workers)
            if chance.random() < 0.5:
                places = places + scene.producers
        self.victims = [each for each in places if each.kind == "worker"]
        self.lines: list[Proxy] = [each.proxy for each in places if each.proxy is not None]

    async def end(self) -> None:
        for line in self.lines:
            line.heal()


class CutReplies(LineFault):
    """The request arrives, its reply is lost, and the connection with it."""

    name = "cut replies"
    weight = 4

    def draw(self, chance: random.Random) -> None:
        super().draw(chance)
        self.cuts = chance.randint(1, 6)
        self.seconds = chance.uniform(0.1, 1.0)

    async def begin(self) -> None:
        for line in self.lines:
            line.cuts = self.cuts


class Reset(LineFault):
    """Every connection ends at once; new ones work."""

    name = "reset lines"
    weight = 2

    async def begin(self) -> None:
        for line in self.lines:
            line.reset()


class Refuse(LineFault):
    """Every connection ends, and new ones are turned away for a while."""

    name = "refuse lines"

    def draw(self, chance: random.Random) -> None:
        super().draw(chance)
        self.seconds = chance.uniform(0.5, 5.0)

    async def begin(self) -> None:
        for line in self.lines:
            line.refusing = True
            line.reset()


class BlackHole(LineFault):
    """Nothing passes in either direction, and nobody is told. Then it all goes on, or the
    connections are reset.
    """

    name = "black hole"
    directions: tuple[str, ...] = ("requests", "replies")

    def draw(self, chance: random.Random) -> None:
        super().draw(chance)
        short = chance.random() < 0.4
        self.seconds = chance.uniform(0.3, 2.0) if short else self.longer_than_lease()
        self.goes_on = chance.random() < 0.5
        self.slow = chance.choice([0.0, 0.0, 0.05, 0.2])

    async def begin(self) -> None:
        for line in self.lines:
            line.block(*self.directions)  # type: ignore[arg-type]

    async def end(self) -> None:
        for line in self.lines:
            if not self.goes_on:
                line.reset()
            line.heal()
        if self.goes_on and self.slow:
            # A line that comes back is often slow at first.
            for line in self.lines:
                line.delay = self.slow
            await asyncio.sleep(self.slow * 10)
            for line in self.lines:
                line.heal()


class DeadReplies(BlackHole):
    """Half-open: requests arrive, replies do not."""

    name = "dead replies"
    weight = 1.5
    directions = ("replies",)


class DeadRequests(BlackHole):
    """Half-open: nothing arrives, though the server could answer."""

    name = "dead requests"
    directions = ("requests",)


class Slow(LineFault):
    """Every piece is late."""

    name = "delay"

    def draw(self, chance: random.Random) -> None:
        super().draw(chance)
        self.delay = chance.uniform(0.02, 0.5)
        self.seconds = chance.uniform(0.5, 3.0)

    async def begin(self) -> None:
        for line in self.lines:
            line.delay = self.delay


class Throttle(LineFault):
    """Few bytes pass in a second."""

    name = "throttle"

    def draw(self, chance: random.Random) -> None:
        super().draw(chance)
        self.rate = chance.randint(5_000, 50_000)
        self.seconds = chance.uniform(0.5, 3.0)

    async def begin(self) -> None:
        for line in self.lines:
            line.rate = self.rate


FAULTS = (CutReplies, Reset, Refuse, BlackHole, DeadReplies, DeadRequests, Slow, Throttle)
