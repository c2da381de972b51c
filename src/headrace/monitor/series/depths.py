"""How deep queues were: one sample a minute, by whichever server comes first."""

from __future__ import annotations

import contextlib
import random

from headrace.errors import RecordConflict
from headrace.loops.loop import Loop
from headrace.monitor.series.records import (
    ALL_QUEUES,
    DEPTHS,
    MINUTE,
    STATES,
    Counts,
    Depth,
    label,
)
from headrace.monitor.snapshot import Snapshots
from headrace.task.app_like import AppLike

# Servers come one after the other, so that most of them find the sample there.
SPREAD = 10.0


class DepthSampler(Loop):
    """Writes how many jobs of each queue are ready, waiting, scheduled and running."""

    name = "depths"

    def __init__(self, host: AppLike, snapshots: Snapshots) -> None:
        super().__init__()
        self._host = host
        self._snapshots = snapshots

    async def tick(self) -> float:
        """Write the sample of this minute, unless another server has."""
        now = self._host.clock.now()
        await self._host.open()
        engine, key = self._host.engine, f"{label(MINUTE.start(now))}/{DEPTHS}"
        if await engine.record_get(MINUTE.kind, key) is None:
            counts = Counts(samples=1)
            together = [0] * len(STATES)
            for queue in (await self._snapshots.get()).queues:
                depth = [getattr(queue, state) for state in STATES]
                counts.depths[queue.name] = Depth(depth, depth)
                together = [total + more for total, more in zip(together, depth, strict=True)]
            counts.depths[ALL_QUEUES] = Depth(together, together)
            with contextlib.suppress(RecordConflict):
                await engine.record_put(MINUTE.kind, key, counts.encode(), version=0)
        rest = MINUTE.seconds - now % MINUTE.seconds
        return rest + random.uniform(0.1, SPREAD)  # noqa: S311 - not for secrets
