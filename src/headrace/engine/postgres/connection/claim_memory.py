"""What a process remembers about its claims: where to begin, their lanes, and when to vacuum."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from headrace.engine.postgres.connection.connection import Link
from headrace.errors import HeadraceError
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Settlement

# At most a twentieth of the time goes into full scans, a fifth if a partial one found too little.
SHARE = 20
SHARE_WHEN_SHORT = 4
SHORTEST = 1.0
SHORTEST_WHEN_SHORT = 0.1
# Jobs that other workers take over are never settled here. Beyond so many, all are forgotten.
MOST_LANES = 10_000
# The server vacuums once a minute at most; in that time a fast worker leaves a million dead rows,
# and each claim steps over all of them. Measured: a backlog of a million jobs was worked off at
# 21,000 jobs/s without this and at 33,000 with it.
VACUUM_EVERY_JOBS = 100_000
# Locks nothing that anybody waits for: it is skipped where the server is doing the same, or where
# the user does not own the table, and gives no space back to the disk, which would need an
# exclusive lock. It takes no parameters, and no transaction in which a search path could be set.
VACUUM = "VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0)"

LaneColumns = tuple[list[str], list[str], list[int]]


class ClaimCursor:
    """Where claims of some queues begin to read the ready jobs.

    A claimed job leaves a dead row and an index entry behind. While a transaction stays open for
    long the server cannot clear them, and every claim walks over all that were claimed since. So
    when full scans take long, twice in a row (one may have met a busy machine), most begin at the
    first job that the last one found. New jobs come
    behind it; jobs that become ready again in front of it wait for the next full scan, which is
    made as often as its cost allows.
    """

    __slots__ = ("_first_seq", "_full_scan_at", "_full_scan_seconds", "_next_full_scan", "_slow")

    def __init__(self) -> None:
        self._first_seq = 0
        self._full_scan_seconds = 0.0
        self._full_scan_at = 0.0
        self._next_full_scan = 0.0
        self._slow = False

    def start(self, now: float) -> int:
        """Return the `seq` to begin with; 0 for a full scan."""
        return self._first_seq if now < self._next_full_scan else 0

    def reset(self) -> None:
        """Make the next scan a full one: on another server jobs may have other numbers."""
        self._next_full_scan = 0.0

    def scanned(
        self, now: float, *, start: int, first_seq: int | None, short: bool, seconds: float
    ) -> None:
        """A scan from `start` has found jobs from `first_seq` on, fewer than wanted if `short`.
        `seconds` is how long it took, 0 if not long.
        """
        if start == 0:
            self._full_scan_seconds, self._full_scan_at = seconds, now
            slow_before, self._slow = self._slow, seconds > 0
            pause = max(SHARE * seconds, SHORTEST)
            self._next_full_scan = now + pause if self._slow and slow_before else 0.0
        if first_seq is not None:
            self._first_seq = first_seq
        if short:
            pause = max(SHARE_WHEN_SHORT * self._full_scan_seconds, SHORTEST_WHEN_SHORT)
            self._next_full_scan = min(self._next_full_scan, self._full_scan_at + pause)


class ClaimedLanes:
    """Queue and lane of each job that was claimed here, so that settling need not look them up.

    A job never changes its lane. Where it is not known, the server looks it up; nothing else
    depends on it.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def remember(self, jobs: Iterable[ClaimedJob]) -> None:
        """Jobs have been claimed."""
        laned = {job.id: (job.queue, job.lane) for job in jobs if job.lane is not None}
        if laned:
            if len(self._known) > MOST_LANES:
                self._known.clear()
            self._known.update(laned)

    def forget(self, settlements: Iterable[Settlement]) -> None:
        """Jobs have been settled."""
        if self._known:
            for each in settlements:
                self._known.pop(each.job_id, None)

    def columns(self, settlements: Iterable[Settlement]) -> LaneColumns:
        """Return queues, lanes and how many of the jobs are in each; empty unless all are known."""
        jobs: dict[tuple[str, str], int] = {}
        if self._known:
            for each in settlements:
                lane = self._known.get(each.job_id)
                if lane is None:
                    return [], [], []
                jobs[lane] = jobs.get(lane, 0) + 1
        return [queue for queue, _ in jobs], [lane for _, lane in jobs], list(jobs.values())


class VacuumAfterClaims:
    """Counts claimed jobs, and has the server vacuum now and then."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._claimed = 0
        self._task: asyncio.Task[None] | None = None

    def count(self, claimed: int) -> None:
        """So many jobs have just been claimed."""
        self._claimed += claimed
        if self._claimed >= VACUUM_EVERY_JOBS and (self._task is None or self._task.done()):
            self._claimed = 0
            self._task = asyncio.get_running_loop().create_task(self.run())

    async def close(self) -> None:
        """Stop what is under way; nothing is lost by that."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def run(self) -> None:
        """Vacuum the jobs now."""
        with contextlib.suppress(HeadraceError):
            await self._link.alone(f"{VACUUM} {self._link.address.quoted_schema}.job")
