"""Jobs that are claimed and not started, in the order they came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from headrace.model.job import ClaimedJob
from headrace.orchestrator.claiming.prefetch import ClaimAges

QUEUE_SIZE = 100


class InternalQueue(asyncio.Queue[ClaimedJob]):
    """What the dispatcher fills and slots take from. The next can be seen before it is taken."""

    def __init__(self) -> None:
        super().__init__(maxsize=QUEUE_SIZE)

    def _init(self, maxsize: int) -> None:
        self._queue: deque[ClaimedJob] = deque()

    @property
    def head(self) -> ClaimedJob | None:
        """The job that comes next."""
        return self._queue[0] if self._queue else None


class UnstartedJobs:
    """The internal queue, what does not fit into it, and since when they wait."""

    __slots__ = ("_backlog", "ages", "queue")

    def __init__(self, queue: InternalQueue) -> None:
        self.queue = queue
        self.ages = ClaimAges()
        self._backlog: deque[ClaimedJob] = deque()

    def put(self, jobs: Sequence[ClaimedJob], now: float) -> None:
        """Jobs have been claimed."""
        self.ages.add(len(jobs), now)
        queue, backlog = self.queue, self._backlog
        for job in jobs:
            if backlog or queue.full():
                backlog.append(job)
            else:
                queue.put_nowait(job)

    def take(self) -> ClaimedJob:
        """The next job; the one behind moves up. It counts as unstarted until `started`."""
        job = self.queue.get_nowait()
        if self._backlog:
            self.queue.put_nowait(self._backlog.popleft())
        return job

    def started(self) -> None:
        """The oldest of all has been started, or given back."""
        self.ages.gone += 1
