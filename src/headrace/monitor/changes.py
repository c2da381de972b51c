"""Every change of status, told to any number of followers by one look for all of them.

Jobs that are followed are read again and again; who follows all jobs has a `Survey` find those that
may have changed. No look has to be quick enough: `steps` finds out what was between two.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.monitor.all_jobs_scan import Known, Survey
from headrace.monitor.change_reconstruction import Seen, birth, look, steps
from headrace.monitor.paging import reads
from headrace.monitor.subscribers import LONGEST_QUEUE, Change, Follower, Wanted
from headrace.task.app_like import AppLike

log = logging.getLogger("headrace.server")

SHORTEST_WAIT = 0.1
LONGEST_WAIT = 0.5
AWAY_WAIT = 1.0
GATHER = 0.02
# A look may take a fifth of a core at most, however many jobs are followed.
IDLE_FACTOR = 4.0
# What those can be told who come back after a lost connection.
KEPT_CHANGES = LONGEST_QUEUE
KEPT_BYTES = 8 * 1_048_576
LINGER = 30.0


class ChangeWatch:
    """Tells followers of changes. It looks only while somebody follows."""

    def __init__(self, host: AppLike, encode: Callable[[Job], bytes]) -> None:
        self.epoch = secrets.token_hex(4)
        self._host = host
        self._encode = encode
        self._known: dict[str, Known] = {}
        self._everything: list[Follower] = []
        self._kept: deque[Change] = deque()
        self._kept_bytes = 0
        self._number = self._dropped = 0
        self._survey: Survey | None = None
        self._ready = asyncio.Event()
        self._left_at = 0.0
        self._fresh = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def follow(self, job: Job, *, after: Seen | None = None) -> Follower:
        """Follow one job: how it is now, then every change, until it is finished.

        `after` is what the follower knows already.
        """
        follower = Follower(after=look(job))
        for step in [job] if after is None else steps(after, job):
            follower.offer(self._change(step))
        if job.status.final:
            follower.end()
        else:
            self._known.setdefault(job.id, Known()).followers.append(follower)
            self._begin()
        return follower

    async def follow_all(self, wanted: Wanted, *, after: int | None = None) -> Follower | None:
        """Follow all jobs from now on, or after a change that has this number.

        None if that is too long ago.
        """
        self._everything.append(follower := Follower(wanted=wanted))
        self._begin()
        try:
            await self._ready.wait()
        except asyncio.CancelledError:
            self.leave(follower)
            raise
        if after is not None:
            if not self._dropped <= after <= self._number:
                self.leave(follower)
                return None
            for change in list(self._kept):
                if change.number > after:
                    follower.offer(change)
        follower.ready = True
        return follower

    def leave(self, follower: Follower, job_id: str | None = None) -> None:
        """Follow no longer."""
        if job_id is None:
            self._everything.remove(follower)
            self._left_at = time.monotonic()
            return
        known = self._known.get(job_id)
        if known is not None and follower in known.followers:
            known.followers.remove(follower)
            if not known.followers and self._survey is None:
                del self._known[job_id]

    async def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _begin(self) -> None:
        self._fresh.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="headrace changes")

    async def _look(self) -> None:
        wait = SHORTEST_WAIT
        away = False
        while self._known or self._everything:
            self._fresh.clear()
            began, before = time.monotonic(), self._number
            try:
                await self._host.open()
                await self._look_once(self._host.engine)
            except Exception as error:
                if not away:
                    trace = None if isinstance(error, EngineUnavailable) else error
                    log.warning("streams of events wait for the engine: %s", error, exc_info=trace)
                away = True
                await asyncio.sleep(AWAY_WAIT)
                continue
            away = False
            cost = time.monotonic() - began
            wait = SHORTEST_WAIT if self._number > before else min(wait * 1.2, LONGEST_WAIT)
            await self._pause(max(wait, cost * IDLE_FACTOR))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not when somebody new is here who knows nothing yet."""
        try:
            await asyncio.wait_for(self._fresh.wait(), seconds)
            await asyncio.sleep(GATHER)  # many may come at once
        except TimeoutError:
            return

    async def _look_once(self, engine: Engine) -> None:
        read: set[str] = set()
        if self._everything and self._survey is None:
            await self._begin_survey(engine)
        elif self._survey is not None:
            if not self._everything and time.monotonic() - self._left_at > LINGER:
                self._end_survey()
            else:
                read |= await self._observe_all(self._survey.arrivals(engine))
                read |= await self._observe_all(self._survey.running(engine))
        ids = [job_id for job_id, known in self._known.items() if known.followers]
        if self._survey is not None:
            ids += self._survey.to_read(read.union(ids))
        async for asked, found in reads(engine, ids):
            for job in found:
                self._observe(job)
            for job_id in asked - {job.id for job in found}:
                self._vanished(job_id)

    async def _begin_survey(self, engine: Engine) -> None:
        survey = Survey(self._known)
        await survey.begin(engine)
        self._survey = survey
        self._dropped = self._number
        self._ready.set()

    def _end_survey(self) -> None:
        self._survey = None
        self._ready.clear()
        self._kept.clear()
        self._kept_bytes = 0
        for job_id in [each for each, known in self._known.items() if not known.followers]:
            del self._known[job_id]

    async def _observe_all(self, jobs: AsyncIterator[Job]) -> set[str]:
        read = set()
        async for job in jobs:
            self._observe(job)
            read.add(job.id)
        return read

    def _observe(self, job: Job) -> None:
        known = self._known.get(job.id)
        if known is None:
            known = self._known[job.id] = Known()
        path = self._path(known, job)
        changes = [self._change(step) for step in path]
        if self._survey is not None:
            self._tell_all(changes)
        known.seen = look(job)
        for follower in list(known.followers):
            if follower.after is not None:
                # New here: what it knows need not be what was seen last.
                for step in steps(follower.after, job):
                    follower.offer(self._change(step))
                follower.after = None
            else:
                for change in changes:
                    follower.offer(change)
            if job.status.final:
                follower.end()
        if job.status.final:
            known.followers.clear()
            if self._survey is not None:
                self._survey.finish(job.id)
            else:
                del self._known[job.id]

    def _path(self, known: Known, job: Job) -> list[Job]:
        if known.seen is not None:
            return steps(known.seen, job)
        if self._survey is None:
            return []
        if self._survey.is_new(job):
            return birth(job)
        # An old job that was finished, and runs again.
        return steps(Seen(job.token - 1, Status.COMPLETED, 0), job) if job.token else [job]

    def _vanished(self, job_id: str) -> None:
        """A job that was pruned tells nothing any more."""
        known = self._known.pop(job_id, None)
        if known is not None:
            for follower in known.followers:
                follower.end()

    def _change(self, job: Job) -> Change:
        self._number += 1
        return Change(self._number, job.id, job.task, job.queue, look(job), self._encode(job))

    def _tell_all(self, changes: list[Change]) -> None:
        for change in changes:
            self._kept.append(change)
            self._kept_bytes += len(change.data)
            for follower in self._everything:
                if follower.ready:
                    follower.offer(change)
        while self._kept and (len(self._kept) > KEPT_CHANGES or self._kept_bytes > KEPT_BYTES):
            dropped = self._kept.popleft()
            self._kept_bytes -= len(dropped.data)
            self._dropped = dropped.number
