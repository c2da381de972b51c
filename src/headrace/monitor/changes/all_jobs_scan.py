"""Finds the jobs that may have changed, for subscribers to all jobs."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from headrace.engine.base import Viewing
from headrace.model.job import Job, JobFilter
from headrace.model.status import ACTIVE, Status
from headrace.monitor.changes.reconstruction import JobFingerprint, fingerprint
from headrace.monitor.changes.subscribers import Subscriber
from headrace.monitor.paging import pages, weight

# So many unfinished jobs are watched. While there are more, changes of the others may be missed.
MOST_KNOWN = 50_000
# New jobs that are held at once, so that they are told in their order.
MOST_HELD = 20_000
MOST_HELD_BYTES = 16 * 1_048_576
# Finished jobs stay known for a while: they may be run again.
MOST_FINISHED = 5_000
# Ids are made before jobs are stored, on machines whose clocks differ.
LATE_SECONDS = 10.0
LATE_EVERY = 2.0
CLOCK_SKEW = 60.0
HEAD = 500
# A scan that cannot watch everything begins anew after so long, or when half of it is done.
PARTIAL_SECONDS = 30.0

Rest = Callable[[float], Awaitable[None]]


class WatchedJob:
    """A job that is watched, alone or with all others, as it was last seen."""

    __slots__ = ("seen", "subscribers")

    def __init__(self, seen: JobFingerprint | None = None) -> None:
        self.seen = seen
        self.subscribers: list[Subscriber] = []


class AllJobsScan:
    """Watches all jobs of a store, at a bounded cost for each poll.

    `rest` is awaited with the time that a read took: what is read is never urgent.
    """

    def __init__(self, known: dict[str, WatchedJob], rest: Rest) -> None:
        self._known = known
        self._rest = rest
        self._began = time.time()
        self._partial_since: float | None = None
        self._newest = self._floor = self._first = ""
        self._late_at = time.monotonic()
        self._finished: dict[str, None] = {}
        self._turn: Iterator[str] = iter(())

    async def begin(self, engine: Viewing) -> None:
        """Read the jobs that are unfinished now, the oldest first."""
        newest = await engine.list_jobs(JobFilter(), limit=1)
        self._newest = self._floor = self._first = newest.jobs[0].id if newest.jobs else ""
        seen: list[tuple[str, JobFingerprint]] = []
        async for page in self._pages(engine, JobFilter(statuses=tuple(ACTIVE))):
            seen += [(job.id, fingerprint(job)) for job in page]
            if len(seen) >= MOST_KNOWN:
                self.miss()
                break
        for job_id, each in reversed(seen):
            self._newest = max(self._newest, job_id)
            known = self._known.setdefault(job_id, WatchedJob())
            if known.seen is None:
                known.seen = each

    def miss(self) -> None:
        """Note that there are jobs whose changes may be missed from now on."""
        if self._partial_since is None:
            self._partial_since = time.monotonic()

    @property
    def outdated(self) -> bool:
        """Whether changes may have been missed, so that it is time to begin anew."""
        if self._partial_since is None:
            return False
        waited = time.monotonic() - self._partial_since
        return waited > PARTIAL_SECONDS or len(self._known) - len(self._finished) < MOST_KNOWN / 2

    @property
    def full(self) -> bool:
        """Whether no more unfinished jobs can be watched."""
        return len(self._known) - len(self._finished) >= MOST_KNOWN

    def is_new(self, job: Job) -> bool:
        """Return whether an unknown job was enqueued since the scan began."""
        return job.id > self._first or job.created_at.timestamp() > self._began - CLOCK_SKEW

    async def arrivals(self, engine: Viewing) -> AsyncIterator[list[Job]]:
        """Return new jobs in their order; every few seconds also those that were stored late, with
        older ids. Of more than can be held none, and the scan is outdated.
        """
        now = time.monotonic()
        until = self._newest
        if now - self._late_at >= LATE_EVERY:
            self._late_at = now
            until = max(self._floor, id_at(time.time() - LATE_SECONDS))
        newest = self._newest
        held: list[Job] = []
        size = 0
        async for page in self._pages(engine, JobFilter()):
            new = [job for job in page if job.id > until]
            newest = max(newest, *(job.id for job in new[:1]), "")
            held += new
            size += sum(map(weight, new))
            if len(new) < len(page):
                break
            if len(held) > MOST_HELD or size > MOST_HELD_BYTES:
                self._partial_since = float("-inf")
                return
        held.reverse()
        yield held
        # Only now: if a page could not be read, all are read again.
        self._newest = newest

    async def running(self, engine: Viewing) -> AsyncIterator[list[Job]]:
        """Return the jobs that run now."""
        async for page in self._pages(engine, JobFilter(statuses=(Status.RUNNING,))):
            yield page

    async def _pages(self, engine: Viewing, wanted: JobFilter) -> AsyncIterator[list[Job]]:
        began = time.perf_counter()
        async for page in pages(engine, wanted):
            spent = time.perf_counter() - began
            yield page
            await self._rest(spent)
            began = time.perf_counter()

    def to_read(self, read: set[str]) -> list[str]:
        """Return the jobs to read one by one: those that ran, and some of the others."""
        known = self._known
        ids = {
            job_id
            for job_id, each in known.items()
            if each.seen is not None and each.seen.status is Status.RUNNING
        }
        # The next to be claimed are mostly the oldest; the others take turns.
        ids.update(itertools.islice(known, HEAD))
        turn = list(itertools.islice(self._turn, HEAD))
        if len(turn) < HEAD:
            self._turn = iter(list(known))
        ids.update(turn)
        return [job_id for job_id in ids - read if job_id in known]

    def finish(self, job_id: str) -> None:
        """Remember a finished job for a while."""
        known = self._known
        # Behind those that may be claimed next.
        known[job_id] = known.pop(job_id)
        self._finished.pop(job_id, None)
        self._finished[job_id] = None
        while len(self._finished) > MOST_FINISHED:
            forgotten = next(iter(self._finished))
            del self._finished[forgotten]
            seen = known[forgotten].seen if forgotten in known else None
            if seen is not None and seen.status.final and not known[forgotten].subscribers:
                del known[forgotten]
                # A job that was dropped here must not be taken for new.
                self._floor = max(self._floor, forgotten)


def id_at(seconds: float) -> str:
    """Return the beginning of an id that is made at this time."""
    stamp = f"{int(seconds * 1000):012x}"
    return f"{stamp[:8]}-{stamp[8:]}"
