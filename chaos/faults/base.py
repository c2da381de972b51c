"""What every fault has."""

from __future__ import annotations

import random
from typing import ClassVar

from chaos.scene import Program, Scene

ALL: tuple[str, ...] = ("sqlite", "postgres", "redis")
SERVERS: tuple[str, ...] = ("postgres", "redis")


class Fault:
    """Breaks something in `begin`, and makes it whole in `end`, `seconds` later.

    Everything about it is drawn from `chance` in the constructor, so that a seed repeats it. Either
    may fail, for example because another fault has taken the server away: that is no finding.
    """

    name: ClassVar[str]
    engines: ClassVar[tuple[str, ...]] = ALL
    # How often it is drawn, compared with others.
    weight: ClassVar[float] = 1.0
    # Of one group no two are under way at once: each would end the other.
    group: ClassVar[str] = ""

    # The variant of a run that it belongs to: one in which something may be lost.
    variant: ClassVar[str] = ""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self.scene = scene
        self.chance = chance
        self.seconds = 0.0
        # The workers that are cut off from their jobs meanwhile, and have to find back; none: it
        # holds up nobody, or not for long.
        self.victims: list[Program] = []
        self.draw(chance)

    @classmethod
    def fits(cls, scene: Scene) -> bool:
        """Whether it can be done here."""
        return scene.options.engine in cls.engines

    def draw(self, chance: random.Random) -> None:
        """Choose what to hit and for how long."""

    async def begin(self) -> None:
        """Break it."""
        raise NotImplementedError

    async def end(self) -> None:
        """Make it whole."""

    def some(self, places: list[Program]) -> list[Program]:
        """One of these, some, or all."""
        count = self.chance.choice([1, 1, 1, 2, len(places)])
        return self.chance.sample(places, min(count, len(places)))

    def longer_than_lease(self) -> float:
        """So long that every lease lapses."""
        return self.scene.options.lease * self.chance.uniform(1.1, 1.6)
