"""Make scheduled jobs pending when their time has come."""

from __future__ import annotations

from headrace.engine.base import Engine
from headrace.loops.loop import Loop

BATCH = 500
LONGEST_PAUSE = 1.0


class DueJobs(Loop):
    """Moves due jobs on, at most a second late."""

    name = "due"

    def __init__(self, *, engine: Engine) -> None:
        super().__init__()
        self.engine = engine

    async def tick(self) -> float:
        """Move what is due, then rest until the next is, or a second at most: a job that another
        process schedules for sooner than that has to be seen as well.
        """
        while True:
            due = await self.engine.promote_due(BATCH)
            if not due.moved:
                break
        if due.next_in is None:
            return LONGEST_PAUSE
        # Never spin on a job that another worker is moving at this moment.
        return min(max(due.next_in, 0.01), LONGEST_PAUSE)
