"""Queues of changes, one for each open stream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from headrace.monitor.change_reconstruction import JobFingerprint

# A subscriber that is this many changes, or bytes, behind is dropped; it can come back and go on.
LONGEST_QUEUE = 5_000
LARGEST_QUEUE = 16 * 1_048_576


class Change(msgspec.Struct, frozen=True, gc=False):
    """One change of one job, shared by all subscribers. `number` grows with every change."""

    number: int
    job_id: str
    task: str
    queue: str
    seen: JobFingerprint
    data: bytes


Wanted = Callable[[Change], bool]


class Subscriber:
    """A stream of the changes of one job, or of all jobs that are `wanted`."""

    __slots__ = ("_bytes", "_changes", "_waiter", "after", "ended", "lost", "ready", "wanted")

    def __init__(
        self, *, after: JobFingerprint | None = None, wanted: Wanted | None = None
    ) -> None:
        self.after = after
        self.wanted = wanted
        self.ready = False
        self.lost = False
        self.ended = False
        self._changes: deque[Change] = deque()
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, change: Change) -> None:
        """Queue a change, if it is wanted."""
        if self.lost or self.ended or (self.wanted is not None and not self.wanted(change)):
            return
        self._bytes += len(change.data)
        if len(self._changes) >= LONGEST_QUEUE or (self._changes and self._bytes > LARGEST_QUEUE):
            self.lost = True
            self._changes.clear()
        else:
            self._changes.append(change)
        self._wake()

    def end(self) -> None:
        """End the stream after what is queued."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self, seconds: float) -> Change | None:
        """The next change, or None after some time, when there are no more, or when it is lost."""
        if not self._changes and not self.ended and not self.lost:
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiter = None
        if not self._changes:
            return None
        change = self._changes.popleft()
        self._bytes -= len(change.data)
        return change

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self.lost or (self.ended and not self._changes)
