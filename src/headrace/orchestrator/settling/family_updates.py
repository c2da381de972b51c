"""What the end of an attempt means for other jobs: parents that wait for it, children that it made.

Out of the way of the exchange: whatever is forgotten here, by a crash or an engine that is away,
is found again by upkeep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from headrace.engine.base import Engine
from headrace.job_tree import cancel_children
from headrace.loop import Loop
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Cancelled, Outcome, Settlement, Snoozed
from headrace.model.status import Status

# A parent of thousands is not asked for after each of them; after the last it always is.
PAUSE = 0.05
BATCH = 500


class Concerned(msgspec.Struct, frozen=True):
    """Whom the outcome of one job concerns: those who may wait, and children."""

    waking: tuple[str, ...] = ()
    # It was cancelled; or it waits for children, and then a cancel may have come first.
    cancelled: bool = False
    perhaps: bool = False


class Relatives(Loop):
    """Wakes jobs whose wait may be over, and cancels the children of cancelled ones."""

    name = "relatives"

    def __init__(self, *, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        # By attempt: whom to tell once its outcome is recorded. The outcome of an earlier attempt
        # that is sent again after an outage must not use up what a later one has to tell.
        self.expected: dict[tuple[str, int], Concerned] = {}
        self._waking: dict[str, None] = {}
        self._cancelled: dict[str, None] = {}
        self._perhaps: dict[str, None] = {}
        self._armed = False
        self._telling = asyncio.Lock()

    def expect(self, job: ClaimedJob, outcome: Outcome) -> None:
        """This outcome is about to be settled: remember whom it concerns, if anybody."""
        key = (job.id, job.token)
        waking = () if job.parent is None else (job.parent,)
        match outcome:
            case Snoozed(awaits=awaits) if awaits:
                # What came between the handler's look and the end of its attempt counts.
                perhaps = any(isinstance(each, AwaitedChildren) for each in awaits)
                self.expected[key] = Concerned((*waking, job.id), perhaps=perhaps)
            case Cancelled():
                self.expected[key] = Concerned(waking, cancelled=True)
            case _ if waking:
                self.expected[key] = Concerned(waking)

    def settled(self, settlements: Sequence[Settlement]) -> None:
        """These outcomes have been recorded; or refused, and then a look more does no harm."""
        for settlement in settlements:
            concerned = self.expected.pop((settlement.job_id, settlement.token), None)
            if concerned is None:
                continue
            self._waking.update(dict.fromkeys(concerned.waking))
            if concerned.cancelled:
                self._cancelled[settlement.job_id] = None
            if concerned.perhaps:
                self._perhaps[settlement.job_id] = None
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
            perhaps, self._perhaps = self._perhaps, {}
            try:
                for some in _some(waking):
                    await self.engine.wake(some)
                for some in _some(perhaps):
                    for job in await self.engine.get(some):
                        if job.status is Status.CANCELLED:
                            cancelled[job.id] = None
                await cancel_children(self.engine, list(cancelled))
            except BaseException:
                self._waking = waking | self._waking
                self._cancelled = cancelled | self._cancelled
                self._perhaps = perhaps | self._perhaps
                raise

    def _rearm(self) -> None:
        self._armed = False
        self._arm()

    def _arm(self) -> None:
        if (self._waking or self._cancelled) and not self._armed:
            self._armed = True
            self.wake()


def _some(ids: dict[str, None]) -> Iterator[list[str]]:
    everything = list(ids)
    for start in range(0, len(everything), BATCH):
        yield everything[start : start + BATCH]
