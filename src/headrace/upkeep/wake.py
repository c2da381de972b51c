"""Wake suspended jobs whose wait is over and that nobody has told."""

from __future__ import annotations

import logging
import random

from headrace.engine.base import Engine
from headrace.loop import Loop

log = logging.getLogger("headrace.wake")

PAGE = 1_000
PAUSE = 10.0


class Wake(Loop):
    """Whoever ends a job or delivers an event wakes those who wait for it. If it dies in between,
    this does so, some seconds later.
    """

    name = "wake"

    def __init__(self, *, engine: Engine, page: int = PAGE) -> None:
        super().__init__()
        self.engine = engine
        self.page = page
        self._after = ""

    async def tick(self) -> float:
        """Look through one page of suspended jobs; the next follows at once."""
        ids = await self.engine.suspended(after=self._after, limit=self.page)
        if ids:
            woken = await self.engine.wake(ids)
            if woken:
                log.info("Woke %d suspended jobs that nobody had told", len(woken))
        if len(ids) == self.page:
            self._after = ids[-1]
            return 0.0
        self._after = ""
        # Spread, so that many workers do not all ask at once.
        return PAUSE * random.uniform(0.8, 1.2)  # noqa: S311
