"""Every fault, by name."""

from __future__ import annotations

import random
from collections.abc import Iterator

from chaos.faults import (
    clocks,
    disks,
    fail_over,
    gone_files,
    handlers,
    lines,
    losses,
    programs,
    servers,
)
from chaos.faults.base import Fault
from chaos.scene import Scene

ROOMS = (programs, lines, servers, disks, gone_files, clocks, handlers, fail_over, losses)

FAULTS: dict[str, type[Fault]] = {kind.name: kind for room in ROOMS for kind in room.FAULTS}


def fitting(scene: Scene) -> list[type[Fault]]:
    """The faults that can be done in a scene, of those that were asked for."""
    wanted = scene.options.faults or tuple(
        name for name, kind in FAULTS.items() if kind.variant == scene.options.variant
    )
    return [kind for name, kind in FAULTS.items() if name in wanted and kind.fits(scene)]


def bursts(scene: Scene, kinds: list[type[Fault]]) -> Iterator[list[tuple[float, Fault]]]:
    """Faults that are under way together, each with the seconds after which it begins.

    Every kind comes once before chance alone decides, so that a short run has them all as far as
    its time goes.
    """
    chance = random.Random(scene.options.seed)
    first = list(kinds)
    chance.shuffle(first)
    while True:
        burst: list[tuple[float, Fault]] = []
        groups: set[str] = set()
        for _ in range(chance.randint(1, scene.options.burst)):
            free = [kind for kind in kinds if not kind.group or kind.group not in groups]
            owed = [kind for kind in first if kind in free]
            if not free:
                break
            kind = owed[0] if owed else chance.choices(free, [each.weight for each in free])[0]
            if owed:
                first.remove(kind)
            groups.add(kind.group)
            begin = chance.uniform(0.0, 1.5) if burst else 0.0
            burst.append((begin, kind(scene, chance)))
        yield burst
