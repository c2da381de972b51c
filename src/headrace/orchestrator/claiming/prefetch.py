"""Claiming ahead: how many jobs to claim, when to ask again, and the jobs that wait for a slot.

No I/O: the dispatcher asks the engine.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from headrace.model.job import ClaimedJob
from headrace.model.outcome import Settlement

# Jobs that are claimed but not started should be at most this many seconds of work,
HORIZON = 0.05
LIMIT = 1_000
# … and should not fill the memory.
BYTES = 32 * 1_048_576
# Batching window for outcomes. With a backlog of very short jobs a longer one is used: the cost per
# exchange dominates, and no slot is waiting.
LINGER = 0.005
BUSY_LINGER = HORIZON / 2
# A new worker does not know how long its jobs take. It assumes long ones and claims none ahead.
ASSUMED_SECONDS = 1.0
WEIGHT = 0.1
# A job that has waited this long unstarted is released: another worker may have a free slot.
PATIENCE = 1.0

SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
# While no signal can arrive, polling is the only way to find a job.
LONGEST_PAUSE_WITHOUT_SIGNALS = 0.25
# Signals of jobs in other queues, or that other workers were faster to claim, come in bursts.
SIGNAL_BURST = 0.1
SIGNAL_PAUSE = 0.001
LONGEST_SIGNAL_PAUSE = 0.05

QUEUE_SIZE = 100


class PrefetchLimit:
    """Learns how long and how large jobs are, and limits how many wait beyond those that run."""

    __slots__ = ("limit", "mean", "size", "slots")

    def __init__(self, slots: int, limit: int = LIMIT) -> None:
        self.slots = slots
        self.limit = limit
        self.mean = ASSUMED_SECONDS
        self.size = 0.0

    def observe_duration(self, seconds: float) -> None:
        self.mean += (seconds - self.mean) * WEIGHT

    def observe_size(self, size: float) -> None:
        """Take in the mean size, in bytes, of the arguments of a batch of jobs."""
        self.size = max(size, self.size / 2)

    def reset(self) -> None:
        """Jobs had to be released: assume long ones again."""
        self.mean = max(self.mean, ASSUMED_SECONDS)

    def count(self) -> int:
        """Return how many jobs may wait unstarted."""
        by_time = HORIZON * self.slots / max(self.mean, 1e-9)
        by_size = BYTES / max(self.size, 1.0)
        return int(min(by_time, by_size, self.limit))

    def fitting(self, count: int) -> int:
        """Return how many of these to claim at once, so that they fit into memory; at least one."""
        return min(count, self.limit, max(int(BYTES / max(self.size, 1.0)), 1))


class PollBackoff:
    """When an idle worker asks for jobs: at a signal, and now and then in case one was lost."""

    __slots__ = ("_empty_at", "_pause", "_signal_pause", "ignore_signals_until", "next")

    def __init__(self) -> None:
        # When to ask without a signal, and until when signals are ignored.
        self.next = 0.0
        self.ignore_signals_until = 0.0
        self._pause = SHORTEST_PAUSE
        self._signal_pause = 0.0
        self._empty_at = 0.0

    def found(self, now: float) -> None:
        """There were jobs: ask again soon."""
        self._pause = SHORTEST_PAUSE
        self._signal_pause = self.ignore_signals_until = 0.0
        self.next = now + self._pause

    def empty(self, now: float, *, listening: bool, asked: bool = True) -> None:
        """There were no jobs: ask less often, and ignore signals for longer in a burst of them.

        `asked` is False if the exchange was made to settle outcomes: its claim cost nothing extra.
        """
        if asked:
            pause = 0.0
            if now - self._empty_at < SIGNAL_BURST:
                pause = min(max(self._signal_pause * 2, SIGNAL_PAUSE), LONGEST_SIGNAL_PAUSE)
            self._signal_pause = pause
            self._empty_at = now
            self.ignore_signals_until = now + pause
        longest = LONGEST_PAUSE if listening else LONGEST_PAUSE_WITHOUT_SIGNALS
        self._pause = min(self._pause * 2, longest)
        self.next = now + self._pause

    def sooner(self, now: float, seconds: float | None) -> None:
        """In so many seconds (None: nobody knows) a job may start: ask then, if not before."""
        if seconds is not None:
            self.next = min(self.next, now + seconds)


class InternalQueue(asyncio.Queue[ClaimedJob]):
    """What the dispatcher fills and the slots take from. Its head can be read in place."""

    def __init__(self) -> None:
        super().__init__(maxsize=QUEUE_SIZE)

    def _init(self, maxsize: int) -> None:
        self._queue: deque[ClaimedJob] = deque()

    @property
    def head(self) -> ClaimedJob | None:
        """Return the next job without removing it."""
        return self._queue[0] if self._queue else None


class ClaimAges:
    """When unstarted jobs were claimed. They start in claim order, so an entry per batch is enough.

    Whoever starts or releases a job increments `gone`.
    """

    __slots__ = ("_batches", "_came", "gone")

    def __init__(self) -> None:
        self._batches: deque[tuple[int, float]] = deque()
        self._came = 0
        self.gone = 0

    def add(self, count: int, now: float) -> None:
        if count:
            self._came += count
            self._batches.append((self._came, now))

    @property
    def count(self) -> int:
        """Return how many jobs wait."""
        return self._came - self.gone

    def oldest(self) -> float | None:
        batches = self._batches
        while batches and batches[0][0] <= self.gone:
            batches.popleft()
        return batches[0][1] if batches else None

    def overdue(self, now: float) -> int:
        """Return how many, from the front, have waited too long."""
        self.oldest()
        last = self.gone
        for upto, came in self._batches:
            if now - came < PATIENCE:
                break
            last = upto
        return last - self.gone


class UnstartedJobs:
    """Claimed jobs that wait for a slot: the internal queue, and what does not fit into it."""

    __slots__ = ("_backlog", "ages", "queue")

    def __init__(self, queue: InternalQueue) -> None:
        self.queue = queue
        self.ages = ClaimAges()
        self._backlog: deque[ClaimedJob] = deque()

    def put(self, jobs: Sequence[ClaimedJob], now: float) -> None:
        self.ages.add(len(jobs), now)
        queue, backlog = self.queue, self._backlog
        for job in jobs:
            if backlog or queue.full():
                backlog.append(job)
            else:
                queue.put_nowait(job)

    def take(self) -> ClaimedJob:
        """Remove the next job. It counts as unstarted until `started` is called."""
        job = self.queue.get_nowait()
        if self._backlog:
            self.queue.put_nowait(self._backlog.popleft())
        return job

    def started(self) -> None:
        """Count the oldest job as started or released."""
        self.ages.gone += 1

    def take_back(
        self, count: int, take_offered: Callable[[], ClaimedJob | None]
    ) -> Iterator[ClaimedJob]:
        """Remove this many unstarted jobs, the oldest first: those offered to threads, then those
        of the queue. Fewer, if threads are quicker.
        """
        for _ in range(count):
            job = take_offered()
            if job is None:
                if self.queue.empty():
                    return
                job = self.take()
            self.started()
            yield job


class JobRunner(Protocol):
    """Runs the jobs of the internal queue: the slots."""

    def fill(self) -> None:
        """Start jobs of the queue in free slots."""

    def take_back_offered(self) -> ClaimedJob | None:
        """Take back the oldest job that was offered to threads and has not started."""

    def settle_silent(self, job: ClaimedJob) -> Settlement:
        """Return the outcome of an attempt that ended here without one."""
