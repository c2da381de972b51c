"""What the end of an attempt means for other jobs: its parent may wait for it, children may have to
be cancelled.

This runs after the exchange. What is lost here, by a crash or an engine that is unavailable, is
found again by upkeep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from headrace.engine.base import Engine
from headrace.job_tree import cancel_children
from headrace.loops.loop import Loop
from headrace.model.durable.awaited import AwaitedChildren
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Cancelled, Outcome, Settlement, Snoozed
from headrace.model.status import Status

# A parent with thousands of children is not checked after each of them; always after the last.
PAUSE = 0.05
BATCH = 500


class AffectedJobs(msgspec.Struct, frozen=True):
    """Jobs that are affected by one outcome: jobs to wake, and children to cancel."""

    waking: tuple[str, ...] = ()
    # `cancelled`: cancel its children. `maybe_cancelled`: it suspended on children, so re-read its
    # status first.
    cancelled: bool = False
    maybe_cancelled: bool = False


class FamilyUpdates(Loop):
    """Wakes jobs whose wait may be over, and cancels the children of cancelled ones."""

    name = "family updates"

    def __init__(self, *, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        # By attempt: what to do once its outcome is settled. An earlier attempt's outcome that is
        # sent again after an outage must not use up the entry of a later one.
        self.affected: dict[tuple[str, int], AffectedJobs] = {}
        self._waking: dict[str, None] = {}
        self._cancelled: dict[str, None] = {}
        self._maybe_cancelled: dict[str, None] = {}
        self._armed = False
        self._flushing = asyncio.Lock()

    def after_settling(self, job: ClaimedJob, outcome: Outcome) -> None:
        """Remember which jobs are affected once this outcome is settled."""
        key = (job.id, job.token)
        waking = () if job.parent is None else (job.parent,)
        match outcome:
            case Snoozed(awaits=awaits) if awaits:
                # What it awaits may have happened before the attempt ended: check it once more.
                maybe_cancelled = any(isinstance(each, AwaitedChildren) for each in awaits)
                self.affected[key] = AffectedJobs(
                    (*waking, job.id), maybe_cancelled=maybe_cancelled
                )
            case Cancelled():
                self.affected[key] = AffectedJobs(waking, cancelled=True)
            case _ if waking:
                self.affected[key] = AffectedJobs(waking)

    def settled(self, settlements: Sequence[Settlement]) -> None:
        """These outcomes have been settled, or refused: then an extra check does no harm."""
        for settlement in settlements:
            affected_jobs = self.affected.pop((settlement.job_id, settlement.token), None)
            if affected_jobs is None:
                continue
            self._waking.update(dict.fromkeys(affected_jobs.waking))
            if affected_jobs.cancelled:
                self._cancelled[settlement.job_id] = None
            if affected_jobs.maybe_cancelled:
                self._maybe_cancelled[settlement.job_id] = None
        self._arm()

    async def tick(self) -> None:
        try:
            await self.flush()
        finally:
            asyncio.get_running_loop().call_later(PAUSE, self._rearm)

    async def flush(self) -> None:
        """Do what is to be done. Returns when it, and what was under way, is done."""
        async with self._flushing:
            waking, self._waking = self._waking, {}
            cancelled, self._cancelled = self._cancelled, {}
            maybe_cancelled, self._maybe_cancelled = self._maybe_cancelled, {}
            try:
                for batch in _batches(waking):
                    await self.engine.wake(batch)
                for batch in _batches(maybe_cancelled):
                    for job in await self.engine.get(batch):
                        if job.status is Status.CANCELLED:
                            cancelled[job.id] = None
                await cancel_children(self.engine, list(cancelled))
            except BaseException:
                self._waking = waking | self._waking
                self._cancelled = cancelled | self._cancelled
                self._maybe_cancelled = maybe_cancelled | self._maybe_cancelled
                raise

    def _rearm(self) -> None:
        self._armed = False
        self._arm()

    def _arm(self) -> None:
        if (self._waking or self._cancelled) and not self._armed:
            self._armed = True
            self.wake()


def _batches(ids: dict[str, None]) -> Iterator[list[str]]:
    everything = list(ids)
    for start in range(0, len(everything), BATCH):
        yield everything[start : start + BATCH]
