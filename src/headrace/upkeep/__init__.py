"""What keeps the store moving: due jobs, jobs that expire, jobs of lost workers, forgotten waits,
children that were replaced, pauses that end, old history and its files.

Every worker runs these loops; any number of them may run at once.
"""

from __future__ import annotations

from headrace.artifacts import ArtifactStore
from headrace.clock import Clock
from headrace.config import Settings
from headrace.engine.base import Engine
from headrace.loops.loop import Loop
from headrace.upkeep.files import Files
from headrace.upkeep.job_loops import (
    DueJobs,
    EndPauses,
    ExpiredJobs,
    Prune,
    Replaced,
    Wake,
    end_expired,
)
from headrace.upkeep.lost_jobs import Sweep

__all__ = [
    "DueJobs",
    "EndPauses",
    "ExpiredJobs",
    "Files",
    "Prune",
    "Replaced",
    "Sweep",
    "Wake",
    "end_expired",
    "loops",
]


def loops(engine: Engine, settings: Settings, clock: Clock, artifacts: ArtifactStore) -> list[Loop]:
    """One of each, over this engine and its files."""
    return [
        DueJobs(engine=engine),
        ExpiredJobs(engine=engine),
        Sweep(engine=engine, clock=clock, lease_seconds=settings.lease_seconds),
        Wake(engine=engine),
        Replaced(engine=engine),
        EndPauses(engine=engine),
        Prune(
            engine=engine,
            history_seconds=settings.history_seconds,
            history_count=settings.history_count,
        ),
        Files(engine=engine, artifacts=artifacts, clock=clock),
    ]
