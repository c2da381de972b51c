"""What the end of an attempt means for other jobs: parents that wait for it, children that it made.

Out of the way of the exchange: whatever is forgotten here, by a crash or an engine that is away,
is found again by upkeep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headrace.engine.base import Engine
from headrace.family import cancel_children
from headrace.loop import Loop
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Cancelled, Outcome, Settlement, Snoozed

# A parent of thousands is not asked for after each of them; after the last it always is.
PAUSE = 0.05
BATCH = 500

_NOBODY: tuple[tuple[str, ...], bool] = (), False


class Relatives(Loop):
    """Wakes jobs whose wait may be over, and cancels the children of cancelled ones."""

    name = "relatives"

    def __init__(self, *, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        # By job: whom to wake once its outcome is recorded, and whether it was cancelled.
        self.expected: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._waking: dict[str, None] = {}
        self._cancelled: dict[str, None] = {}
        self._armed = False
        self._telling = asyncio.Lock()

    def expect(self, job: ClaimedJob, outcome: Outcome) -> None:
        """This outcome is about to be settled: remember whom it concerns, if anybody."""
        waking = () if job.parent is None else (job.parent,)
        match outcome:
            case Snoozed(awaits=awaits) if awaits:
                # What came between the handler's look and the end of its attempt counts.
                waking = (*waking, job.id)
        cancelled = type(outcome) is Cancelled
        if waking or cancelled:
            self.expected[job.id] = waking, cancelled

    def settled(self, settlements: Sequence[Settlement]) -> None:
        """These outcomes have been recorded; or refused, and then a look more does no harm."""
        for settlement in settlements:
            waking, cancelled = self.expected.pop(settlement.job_id, _NOBODY)
            self._waking.update(dict.fromkeys(waking))
            if cancelled:
                self._cancelled[settlement.job_id] = None
        self._arm()

    async def tick(self) -> None:
        """Do what is to be done, then pause."""
        try:
            await self.flush()
        finally:
            asyncio.get_running_loop().call_later(PAUSE, self._rearm)

    async def flush(self) -> None:
        """Do what is to be done. Returns when it, and what was under way, is done."""
        async with self._telling:
            waking, self._waking = self._waking, {}
            cancelled, self._cancelled = self._cancelled, {}
            try:
                ids = list(waking)
                for start in range(0, len(ids), BATCH):
                    await self.engine.wake(ids[start : start + BATCH])
                await cancel_children(self.engine, list(cancelled))
            except BaseException:
                self._waking = waking | self._waking
                self._cancelled = cancelled | self._cancelled
                raise

    def _rearm(self) -> None:
        self._armed = False
        self._arm()

    def _arm(self) -> None:
        if (self._waking or self._cancelled) and not self._armed:
            self._armed = True
            self.wake()
