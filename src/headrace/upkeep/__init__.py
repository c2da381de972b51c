"""What keeps the store moving: due jobs, jobs of lost workers, old history.

Every worker runs these loops; any number of them may run at once.
"""

from __future__ import annotations

from headrace.clock import Clock
from headrace.config import Settings
from headrace.engine.base import Engine
from headrace.loop import Loop
from headrace.upkeep.due import Due
from headrace.upkeep.prune import Prune
from headrace.upkeep.sweep import Sweep

__all__ = ["Due", "Prune", "Sweep", "loops"]


def loops(engine: Engine, settings: Settings, clock: Clock) -> list[Loop]:
    """One of each, over this engine."""
    return [
        Due(engine=engine),
        Sweep(engine=engine, clock=clock, lease_seconds=settings.lease_seconds),
        Prune(
            engine=engine,
            history_seconds=settings.history_seconds,
            history_count=settings.history_count,
        ),
    ]
