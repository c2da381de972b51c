"""How long it takes until jobs are completed again when nothing is broken any more."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from dataclasses import dataclass, field

from chaos.journal import Line, Reader
from chaos.scene import Program, Scene

LOOK_SECONDS = 0.02


@dataclass
class Progress:
    """What the journal has told so far."""

    acknowledged: int = 0
    completed: int = 0
    # When each process has last had a result taken by the engine.
    settled_at: dict[int, float] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)

    def take(self, lines: list[Line]) -> None:
        """Count these too."""
        for line in lines:
            self.events[line.event] += 1
            if line.event == "acknowledged":
                self.acknowledged += 1
            elif line.event == "settled" and line.name == "Completed":
                self.completed += 1
                self.settled_at[line.pid] = line.at


@dataclass
class Recovery:
    """Seconds from calm to the first job that one of the victims completed, and to the moment when
    all of them had. None: not within the time that was waited.
    """

    first: float | None
    last: float | None


class Watch:
    """Follows the journal of a run."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.progress = Progress()
        # Victims of the last look that had completed nothing when it ended.
        self.idle: list[Program] = []
        self._reader = Reader(scene.path)

    def look(self) -> Progress:
        """Everything that was written down until now."""
        self.progress.take(self._reader.new())
        return self.progress

    async def after(self, calm: float, groups: list[list[Program]]) -> list[Recovery]:
        """Wait until every group of victims has completed jobs again; anybody, where there are
        none.
        """
        found = [Recovery(None, None) for _ in groups]
        done: dict[str, float] = {}
        limit = time.monotonic() + self.scene.options.patience
        while time.monotonic() < limit:
            settled = self.look().settled_at
            for worker in self.scene.workers:
                at = settled.get(worker.pid, 0.0)
                if at >= calm:
                    done.setdefault(worker.name, at - calm)
            for victims, recovery in zip(groups, found, strict=True):
                names = [each.name for each in victims or self.scene.workers]
                seconds = [done[name] for name in names if name in done]
                if seconds and recovery.first is None:
                    recovery.first = min(seconds)
                if victims and len(seconds) == len(victims) and recovery.last is None:
                    recovery.last = max(seconds)
            if all(
                each.first is not None and (each.last is not None or not victims)
                for each, victims in zip(found, groups, strict=True)
            ):
                break
            await asyncio.sleep(LOOK_SECONDS)
        self.idle = [
            victim for victim in dict.fromkeys(itertools.chain(*groups)) if victim.name not in done
        ]
        return found
