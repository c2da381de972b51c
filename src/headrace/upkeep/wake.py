"""Wake suspended jobs whose wait is over and whose waker died."""

from __future__ import annotations

import logging
import random
import time

from headrace.engine.base import Engine
from headrace.loops.loop import Loop

log = logging.getLogger("headrace.wake")

PAGE = 1_000
PAUSE = 10.0
# A look through all of them is followed by a rest of so many times its length.
REST = 20


class Wake(Loop):
    """The process that ends a job or delivers an event wakes the jobs that wait for it. If it dies
    first, this does so, some seconds later.
    """

    name = "wake"

    def __init__(self, *, engine: Engine, page: int = PAGE) -> None:
        super().__init__()
        self.engine = engine
        self.page = page
        self._after = ""
        self._began = 0.0

    async def tick(self) -> float:
        """Look through one page of suspended jobs; the next follows at once."""
        if not self._after:
            self._began = time.monotonic()
        ids = await self.engine.suspended(after=self._after, limit=self.page)
        if ids:
            woken = await self.engine.wake(ids)
            if woken:
                log.info("Woke %d suspended jobs whose waker had died", len(woken))
        if len(ids) == self.page:
            self._after = ids[-1]
            return 0.0
        self._after = ""
        # Where very many wait, scanning them must not take up all workers.
        pause = max(PAUSE, REST * (time.monotonic() - self._began))
        # Spread, so that many workers do not all ask at once.
        return pause * random.uniform(0.8, 1.2)  # noqa: S311
