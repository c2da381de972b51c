"""Give jobs of lost workers to others."""

from __future__ import annotations

import logging
import random

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.job_tree import cancel_children
from headrace.loops.loop import Loop
from headrace.model.job import LostJob
from headrace.model.outcome import Cancelled, Settlement
from headrace.upkeep.lost_jobs import settlement_of_lost

log = logging.getLogger("headrace.sweep")

BATCH = 200
LONGEST_PAUSE = 5.0


class Sweep(Loop):
    """Settles what dead workers hold, so that another takes over or the job ends."""

    name = "sweep"

    def __init__(self, *, engine: Engine, clock: Clock, lease_seconds: float) -> None:
        super().__init__()
        self.engine = engine
        self.clock = clock
        self.pause = min(lease_seconds / 4, LONGEST_PAUSE)

    async def tick(self) -> float:
        """Settle one batch. Several sweeps may race: tokens let one outcome count."""
        lost = await self.engine.take_lost(BATCH)
        if lost:
            now = self.clock.utcnow()
            settlements = [settlement_of_lost(job, now=now) for job in lost]
            answer = await self.engine.exchange(settlements)
            refused = set(answer.refused)
            await self._tell(lost, settlements)
            for job, settlement in zip(lost, settlements, strict=True):
                if job.job.id not in refused:
                    log.warning(
                        "Worker %r lost job %s (%s, attempt %d of %d): %s",
                        job.worker,
                        job.job.id,
                        job.job.task,
                        job.job.attempt,
                        job.job.max_attempts,
                        type(settlement.outcome).__name__,
                    )
        if len(lost) == BATCH:
            return 0.0
        # Spread, so that many workers do not all ask at once.
        return self.pause * random.uniform(0.8, 1.2)  # noqa: S311

    async def _tell(self, lost: list[LostJob], settlements: list[Settlement]) -> None:
        """Wake parents that may have waited for one of these, and reach children of cancelled
        ones.
        """
        parents = {each.job.parent for each in lost if each.job.parent is not None}
        if parents:
            await self.engine.wake(list(parents))
        await cancel_children(
            self.engine, [each.job_id for each in settlements if type(each.outcome) is Cancelled]
        )
