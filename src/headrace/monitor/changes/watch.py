"""Every change of status, sent to any number of subscribers by one poll for all of them.

Watched jobs are read again and again; for subscribers to all jobs, `AllJobsScan` finds those that
may have changed. No poll has to be quick enough: `changes_since` finds what was between two. So a
burst is told late rather than at the cost of whoever works in this process, and where there is more
than can be held, subscribers are told of a gap.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator

from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.monitor.changes.all_jobs_scan import AllJobsScan, WatchedJob
from headrace.monitor.changes.reconstruction import (
    JobFingerprint,
    changes_since,
    changes_since_creation,
    fingerprint,
)
from headrace.monitor.changes.subscribers import Change, Encode, Subscriber, Wanted
from headrace.monitor.paging import reads
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.server")

SHORTEST_WAIT = 0.1
LONGEST_WAIT = 0.5
AWAY_WAIT = 1.0
GATHER = 0.02
# Polling may take a fifth of a core at most, however many jobs are watched. A read mostly waits.
IDLE_FACTOR = 4.0
READ_FACTOR = 1.0
# So many jobs are looked at before others may have the event loop.
PIECE = 25
# What can be sent again after a lost connection.
KEPT_CHANGES = 5_000
KEPT_BYTES = 8 * 1_048_576
LINGER = 30.0


class ChangeWatch:
    """Sends changes to subscribers. It polls only while there are any."""

    def __init__(self, host: AppLike, encode: Encode) -> None:
        self.epoch = secrets.token_hex(4)
        self._host = host
        self._encode = encode
        self._known: dict[str, WatchedJob] = {}
        self._everything: list[Subscriber] = []
        self._kept: deque[Change] = deque()
        self._kept_bytes = 0
        self._number = self._dropped = 0
        self._rested = 0.0
        self._scan: AllJobsScan | None = None
        self._ready = asyncio.Event()
        self._left_at = 0.0
        self._fresh = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def follow(self, job: Job, *, after: JobFingerprint | None = None) -> Subscriber:
        """Follow one job: how it is now, then every change, until it is finished.

        `after` is what the subscriber has seen already.
        """
        subscriber = Subscriber(after=fingerprint(job))
        for step in [job] if after is None else changes_since(after, job):
            subscriber.offer(self._change(step))
        if job.status.final:
            subscriber.end()
        else:
            self._known.setdefault(job.id, WatchedJob()).subscribers.append(subscriber)
            self._begin()
        return subscriber

    async def follow_all(self, wanted: Wanted, *, after: int | None = None) -> Subscriber | None:
        """Follow all jobs from now on, or after a change that has this number.

        None if that is too long ago.
        """
        self._everything.append(subscriber := Subscriber(wanted=wanted))
        self._begin()
        try:
            await self._ready.wait()
        except asyncio.CancelledError:
            self.leave(subscriber)
            raise
        if after is not None:
            if not self._dropped <= after <= self._number:
                self.leave(subscriber)
                return None
            for change in list(self._kept):
                if change.number > after:
                    subscriber.offer(change)
        subscriber.began = self._number if after is None else after
        subscriber.ready = True
        return subscriber

    def leave(self, subscriber: Subscriber, job_id: str | None = None) -> None:
        """Remove a subscriber."""
        if job_id is None:
            self._everything.remove(subscriber)
            self._left_at = time.monotonic()
            return
        known = self._known.get(job_id)
        if known is not None and subscriber in known.subscribers:
            known.subscribers.remove(subscriber)
            if not known.subscribers and self._scan is None:
                del self._known[job_id]

    async def close(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _begin(self) -> None:
        self._fresh.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll(), name="headrace changes")

    async def _poll(self) -> None:
        wait = SHORTEST_WAIT
        away = False
        while self._known or self._everything or self._scan is not None:
            self._fresh.clear()
            began, before = time.monotonic(), self._number
            self._rested = 0.0
            try:
                await self._host.open()
                await self._poll_once(self._host.engine)
            except Exception as error:
                if not away:
                    trace = None if isinstance(error, EngineUnavailable) else error
                    log.warning("streams of events wait for the engine: %s", error, exc_info=trace)
                away = True
                await asyncio.sleep(AWAY_WAIT)
                continue
            away = False
            cost = time.monotonic() - began - self._rested
            wait = SHORTEST_WAIT if self._number > before else min(wait * 1.2, LONGEST_WAIT)
            await self._pause(max(wait, cost * IDLE_FACTOR))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not for long when there is a new subscriber."""
        try:
            await asyncio.wait_for(self._fresh.wait(), seconds)
            await asyncio.sleep(GATHER)  # many may come at once
        except TimeoutError:
            return

    async def _rest(self, spent: float, factor: float = READ_FACTOR) -> None:
        """Leave the event loop, and the processor, to others after some work."""
        self._rested += spent
        seconds = min(spent * factor, LONGEST_WAIT)
        self._rested += seconds
        await asyncio.sleep(seconds)

    async def _poll_once(self, engine: Engine) -> None:
        read: set[str] = set()
        scan = self._scan
        if self._everything and (scan is None or scan.outdated):
            await self._begin_scan(engine)
        elif scan is not None:
            if not self._everything and time.monotonic() - self._left_at > LINGER:
                self._end_scan()
            else:
                read |= await self._observe_many(scan.arrivals(engine))
                read |= await self._observe_many(scan.running(engine))
        ids = [job_id for job_id, known in self._known.items() if known.subscribers]
        if self._scan is not None:
            ids += self._scan.to_read(read.union(ids))
        began = time.perf_counter()
        async for asked, found in reads(engine, ids):
            await self._rest(time.perf_counter() - began)
            await self._observe_some(found)
            for job_id in asked - {job.id for job in found}:
                self._vanished(job_id)
            began = time.perf_counter()

    async def _begin_scan(self, engine: Engine) -> None:
        """Take the jobs as they are now. What was before, nobody can tell."""
        self._forget_watched()
        scan = AllJobsScan(self._known, self._rest)
        await scan.begin(engine)
        self._scan = scan
        self._kept.clear()
        self._kept_bytes = 0
        # Now, not before: who lists the jobs after it is told every change since.
        self._number += 1
        self._dropped = self._number
        for subscriber in self._everything:
            if subscriber.ready:
                subscriber.offer(Change(self._number))
        self._ready.set()

    def _end_scan(self) -> None:
        self._scan = None
        self._ready.clear()
        self._kept.clear()
        self._kept_bytes = 0
        self._forget_watched()

    def _forget_watched(self) -> None:
        for job_id in [each for each, known in self._known.items() if not known.subscribers]:
            del self._known[job_id]

    async def _observe_many(self, pages: AsyncIterator[list[Job]]) -> set[str]:
        read: set[str] = set()
        async for page in pages:
            await self._observe_some(page)
            read.update(job.id for job in page)
        return read

    async def _observe_some(self, jobs: list[Job]) -> None:
        for start in range(0, len(jobs), PIECE):
            began = time.perf_counter()
            for job in jobs[start : start + PIECE]:
                self._observe(job)
            await self._rest(time.perf_counter() - began, IDLE_FACTOR)

    def _observe(self, job: Job) -> None:
        known = self._known.get(job.id)
        too_many = known is None and self._scan is not None and self._scan.full
        if known is None:
            known = self._known[job.id] = WatchedJob()
        path = self._path(known, job)
        changes = [self._change(step) for step in path]
        if self._scan is not None:
            self._publish(changes)
        known.seen = fingerprint(job)
        for subscriber in list(known.subscribers):
            if subscriber.after is not None:
                # It is new: what it has seen need not be what was seen here last.
                for step in changes_since(subscriber.after, job):
                    subscriber.offer(self._change(step))
                subscriber.after = None
            else:
                for change in changes:
                    subscriber.offer(change)
            if job.status.final:
                subscriber.end()
        if job.status.final:
            known.subscribers.clear()
            if self._scan is not None:
                self._scan.finish(job.id)
            else:
                del self._known[job.id]
        elif too_many and self._scan is not None:
            del self._known[job.id]
            self._scan.miss()

    def _path(self, known: WatchedJob, job: Job) -> list[Job]:
        if known.seen is not None:
            return changes_since(known.seen, job)
        if self._scan is None:
            return []
        if self._scan.is_new(job):
            return changes_since_creation(job)
        # An old job that was finished, and runs again.
        return (
            changes_since(JobFingerprint(job.token - 1, Status.COMPLETED, 0), job)
            if job.token
            else [job]
        )

    def _vanished(self, job_id: str) -> None:
        """End the streams of a job that was pruned."""
        known = self._known.pop(job_id, None)
        if known is not None:
            for subscriber in known.subscribers:
                subscriber.end()

    def _change(self, job: Job) -> Change:
        self._number += 1
        return Change(self._number, job, self._encode)

    def _publish(self, changes: list[Change]) -> None:
        for change in changes:
            self._kept.append(change)
            self._kept_bytes += change.size
            ready = [each for each in self._everything if each.ready]
            if sum(each.offer(change) for each in ready):
                # Here, where it counts as work, after which there is a rest.
                _ = change.data
        while self._kept and (len(self._kept) > KEPT_CHANGES or self._kept_bytes > KEPT_BYTES):
            dropped = self._kept.popleft()
            self._kept_bytes -= dropped.size
            self._dropped = dropped.number
