"""Delete finished jobs that are older than anybody asked to keep."""

from __future__ import annotations

import random

from headrace.engine.base import Engine
from headrace.loops.loop import Loop

BATCH = 500
PAUSE = 60.0
STEP_PAUSE = 0.1


class Prune(Loop):
    """Prunes history in small steps, so that it is never in the way of running jobs."""

    name = "prune"

    def __init__(
        self, *, engine: Engine, history_seconds: float, history_count: int | None
    ) -> None:
        super().__init__()
        self.engine = engine
        self.history_seconds = history_seconds
        self.history_count = history_count

    async def tick(self) -> float:
        """Delete one step's worth; go on soon while there is more."""
        deleted = await self.engine.prune(
            older_than=self.history_seconds, keep=self.history_count, limit=BATCH
        )
        if deleted >= BATCH:
            return STEP_PAUSE
        # Spread, so that many workers do not all ask at once.
        return PAUSE * random.uniform(0.8, 1.2)  # noqa: S311
