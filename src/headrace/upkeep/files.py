"""Remove the files of jobs that are gone."""

from __future__ import annotations

import logging

from headrace.artifacts import ArtifactStore, pending_uploads
from headrace.artifacts.kept_files import kept_paths
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import EngineError, EngineUnavailable, InvalidInput
from headrace.loops.loop import around
from headrace.model.ids import parse_id
from headrace.model.views import Record
from headrace.upkeep.job_loops import EngineLoop

log = logging.getLogger("headrace.files")

PRUNED = "pruned-artifacts"
"""The engine writes a record of this kind for each job with files that it prunes, by its id."""

BATCH = 50
PAUSE = 60.0
STEP_PAUSE = 0.1
TIDY_EVERY = 3_600.0
# Nothing tells that a job with uploads was pruned, but that it is not there: all are looked at.
WALK_EVERY = 1_800.0
# A caller has so long to hand in the job after its files: a slow upload is no reason to lose one.
GRACE = 3_600.0
# Jobs are read with their arguments, which may be large.
LOOK = 10


class Files(EngineLoop):
    """Removes files of pruned jobs, and of jobs that were never handed in, in small steps.

    A record is deleted after the files that it stands for are, so it is safe to be killed half-way
    or to come second. Files of a job that exists are left alone, and so are kept ones.
    """

    name = "files"

    def __init__(self, *, engine: Engine, artifacts: ArtifactStore, clock: Clock) -> None:
        super().__init__(engine=engine)
        self.artifacts = artifacts
        self.clock = clock
        self._after = {PRUNED: "", pending_uploads.KIND: ""}
        self._tidied = 0.0
        # When the walk over jobs with uploads begins that is under way, or was the last.
        self._walked = 0.0
        self._walk_pause = 0.0
        self.refused: dict[str, EngineError] = {}
        self._reported: set[str] = set()

    async def tick(self) -> float:
        """Do one step's worth of each kind; go on soon while there is more."""
        more = False
        for kind in self._kinds():
            records = await self.engine.record_list(kind, after=self._after[kind], limit=BATCH)
            # One that cannot be removed now must not be in the way of those behind it.
            first, self._after[kind] = not self._after[kind], ""
            if len(records) == BATCH:
                self._after[kind] = records[-1].key
            elif first and kind == pending_uploads.KIND:
                self._walk_pause = 0.0  # so few cost nothing
            more = more or len(records) == BATCH
            await self.remove(records)
        self._report()
        if self.clock.now() - self._tidied > TIDY_EVERY:
            await self.artifacts.tidy()
            self._tidied = self.clock.now()
        return STEP_PAUSE if more else around(PAUSE)

    def _kinds(self) -> tuple[str, ...]:
        """Pruned jobs each time. Those with uploads, most of which exist, seldom if many."""
        now = self.clock.now()
        if not self._after[pending_uploads.KIND]:
            if abs(now - self._walked) < self._walk_pause:
                return (PRUNED,)
            self._walked = now
            self._walk_pause = around(WALK_EVERY)
        return (PRUNED, pending_uploads.KIND)

    async def remove(self, records: list[Record]) -> int:
        """Remove the files of these jobs where they are gone, and return the number of jobs.

        Raises `EngineUnavailable` if the store is away; the records stay for another time. What
        else the store says no to is in `refused`, by job.
        """
        removed = 0
        for record in await self._gone(records):
            self.refused.pop(record.key, None)
            # To remove the files of those before it takes a while, in which it may have come back.
            if await self.engine.get([parse_id(record.key)]):
                continue
            spare = await self._kept(record)
            try:
                await (
                    self.artifacts.remove_job(record.key, spare)
                    if spare
                    else self.artifacts.remove_job(record.key)
                )
            except EngineUnavailable:
                raise
            except EngineError as error:
                # Some folder is not ours to remove; the next may be.
                self.refused[record.key] = error
                continue
            await self.engine.record_delete(PRUNED, record.key)
            removed += 1
        return removed

    async def _kept(self, record: Record) -> set[str]:
        """Return the files of a job that are to be spared. The job is gone; nothing else may vouch
        for its files when the records of kept ones are read: see `artifacts/kept_files.py`.
        """
        if record.kind != PRUNED:
            await self.engine.record_put(PRUNED, record.key, b"{}")  # so that none is forgotten
        await pending_uploads.forget(self.engine, record.key)
        return await kept_paths(self.engine, record.key)

    def _report(self) -> None:
        """Say what cannot be removed, once, and again when that changes."""
        refused = set(self.refused)
        if refused and refused != self._reported:
            job_id, error = next(iter(self.refused.items()))
            log.warning(
                "The files of %d jobs cannot be removed, such as those of %s: %s",
                len(refused),
                job_id,
                error,
            )
        self._reported = refused

    async def _gone(self, records: list[Record]) -> list[Record]:
        """Those whose job is gone, or was never there and will not come."""
        known = []
        for record in records:
            try:
                known.append((parse_id(record.key), record))
            except InvalidInput:
                log.warning("A record of kind %s has no job id for a key: deleted", record.kind)
                await self.engine.record_delete(record.kind, record.key)
        exist: set[str] = set()
        for start in range(0, len(known), LOOK):
            ids = [job_id for job_id, _ in known[start : start + LOOK]]
            exist |= {job.id for job in await self.engine.get(ids)}
        gone = []
        for job_id, record in known:
            if job_id not in exist:
                if record.kind == PRUNED or self._age(record) > GRACE:
                    gone.append(record)
            elif record.kind == PRUNED:
                # A job of this id was enqueued again: its files are not to be removed here.
                await self.engine.record_delete(record.kind, record.key)
        return gone

    def _age(self, record: Record) -> float:
        return self.clock.now() - record.updated_at.timestamp()

    async def remove_pruned(self) -> int:
        """Remove the files of all jobs that have been pruned, and return the number of jobs."""
        removed, after = 0, ""
        while records := await self.engine.record_list(PRUNED, after=after, limit=BATCH):
            removed += await self.remove(records)
            after = records[-1].key
        return removed
