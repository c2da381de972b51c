"""Loops that keep jobs moving: due and suspended ones, replaced children, pauses, old history."""

from __future__ import annotations

import logging
import time

import msgspec

from headrace.engine.base import Engine
from headrace.engine.pauses import end_pauses
from headrace.job_tree import REPLACED, cancel_children, complete_rerun, wake_parents
from headrace.loops.loop import Loop, around

log = logging.getLogger("headrace.upkeep")

DUE_BATCH = 500
LONGEST_DUE_PAUSE = 1.0
EXPIRY_PAUSE = 5.0
WAKE_PAGE = 1_000
WAKE_PAUSE = 10.0
# A look through all suspended jobs is followed by a rest of so many times its length.
WAKE_REST = 20
REPLACED_BATCH = 50
REPLACED_PAUSE = 30.0
END_PAUSES_PAUSE = 5.0
PRUNE_BATCH = 500
PRUNE_PAUSE = 60.0
STEP_PAUSE = 0.1


class EngineLoop(Loop):
    """A loop that keeps the store of an engine in order."""

    def __init__(self, *, engine: Engine) -> None:
        super().__init__()
        self.engine = engine


class DueJobs(EngineLoop):
    """Makes scheduled jobs pending when their time has come, at most a second late."""

    name = "due"

    async def tick(self) -> float:
        """Move what is due, then rest until the next is, or a second at most: a job that another
        process schedules for sooner than that has to be seen as well.
        """
        while True:
            due = await self.engine.promote_due(DUE_BATCH)
            if not due.moved:
                break
        if due.next_in is None:
            return LONGEST_DUE_PAUSE
        # Never spin on a job that another worker is moving at this moment.
        return min(max(due.next_in, 0.01), LONGEST_DUE_PAUSE)


class ExpiredJobs(EngineLoop):
    """Cancels jobs that have not started in time, some seconds late at most."""

    name = "expired"

    async def tick(self) -> float:
        """Cancel what has expired, then rest until the next does, or some seconds at most."""
        return await end_expired(self.engine)


async def end_expired(engine: Engine) -> float:
    """Cancel all jobs that have not started in time; return in how many seconds to look again."""
    while True:
        found = await engine.expire(DUE_BATCH)
        if not found.ids:
            break
        await cancel_children(engine, found.ids)
        await wake_parents(engine, found.ids)
    # Nobody starts them late in any case: where none can expire, an idle worker asks seldom.
    if found.next_in is None:
        return EXPIRY_PAUSE
    return min(max(found.next_in, 0.01), LONGEST_DUE_PAUSE)


class Wake(EngineLoop):
    """The process that ends a job or delivers an event wakes the jobs that wait for it. If it dies
    first, this does so, some seconds later.
    """

    name = "wake"

    def __init__(self, *, engine: Engine, page: int = WAKE_PAGE) -> None:
        super().__init__(engine=engine)
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
        return around(max(WAKE_PAUSE, WAKE_REST * (time.monotonic() - self._began)))


class Replaced(EngineLoop):
    """The process that runs a job again cancels the children in whose place others come, and runs
    those again that are waited for once more. If it dies first, this does so, some seconds later.
    To do it twice does no harm.
    """

    name = "replaced"

    async def tick(self) -> float:
        """Complete what was left half done; go on at once while there is more."""
        records = await self.engine.record_list(REPLACED, limit=REPLACED_BATCH)
        for record in records:
            try:
                await complete_rerun(self.engine, record.key)
            except msgspec.MsgspecError:
                log.warning("Record %s/%s cannot be read: deleted", record.kind, record.key)
                await self.engine.record_delete(record.kind, record.key)
        return 0.0 if len(records) == REPLACED_BATCH else around(REPLACED_PAUSE)


class EndPauses(EngineLoop):
    """Resumes queues that were paused until a time, some seconds after it."""

    name = "pauses"

    async def tick(self) -> float:
        """Resume what is to be resumed."""
        for queue in await end_pauses(self.engine):
            log.info("Queue %r is open again: its pause has ended", queue)
        return around(END_PAUSES_PAUSE)


class Prune(EngineLoop):
    """Deletes finished jobs that are older than anybody asked to keep, in small steps, so that it
    is never in the way of running jobs.
    """

    name = "prune"

    def __init__(
        self, *, engine: Engine, history_seconds: float, history_count: int | None
    ) -> None:
        super().__init__(engine=engine)
        self.history_seconds = history_seconds
        self.history_count = history_count

    async def tick(self) -> float:
        """Delete one step's worth; go on soon while there is more."""
        deleted = await self.engine.prune(
            older_than=self.history_seconds, keep=self.history_count, limit=PRUNE_BATCH
        )
        return STEP_PAUSE if deleted >= PRUNE_BATCH else around(PRUNE_PAUSE)
