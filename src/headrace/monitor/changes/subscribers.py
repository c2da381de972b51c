"""Queues of changes, one for each open stream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from headrace.model.job import Job
from headrace.monitor.changes.reconstruction import JobFingerprint, fingerprint
from headrace.monitor.paging import weight

# A subscriber that is this many changes, or bytes, behind is told of a gap instead.
LONGEST_QUEUE = 10_000
LARGEST_QUEUE = 16 * 1_048_576

Encode = Callable[[Job], bytes]


class Change(msgspec.Struct):
    """One change of one job, shared by all subscribers. `number` grows with every change.

    Without a job it is a gap: there were changes before it that nobody can tell any more.
    """

    number: int
    job: Job | None = None
    encode: Encode | None = None
    _data: bytes | None = None

    @property
    def data(self) -> bytes:
        """The job as JSON, encoded when it is first asked for."""
        if self._data is None:
            found = self.job is not None and self.encode is not None
            self._data = self.encode(self.job) if found else b"{}"  # type: ignore[misc, arg-type]
        return self._data

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 0 if self.job is None else weight(self.job)

    @property
    def seen(self) -> JobFingerprint | None:
        """What to remember of the job."""
        return None if self.job is None else fingerprint(self.job)


Wanted = Callable[[Job], bool]


@dataclass(kw_only=True, slots=True, eq=False)
class Subscriber:
    """A stream of the changes of one job, or of all jobs that are `wanted`."""

    after: JobFingerprint | None = None
    wanted: Wanted | None = None
    ready: bool = False
    ended: bool = False
    # The number of the last change before this stream.
    began: int = 0
    _changes: deque[Change] = field(default_factory=deque, init=False)
    _bytes: int = field(default=0, init=False)
    _waiter: asyncio.Future[None] | None = field(default=None, init=False)

    def offer(self, change: Change) -> bool:
        """Queue a change, if it is wanted. Who is too far behind has a gap in place of the rest.
        Return whether it was wanted.
        """
        job = change.job
        if self.ended or (job is not None and self.wanted is not None and not self.wanted(job)):
            return False
        if len(self._changes) >= LONGEST_QUEUE or (
            self._changes and self._bytes + change.size > LARGEST_QUEUE
        ):
            self._changes.clear()
            self._changes.append(Change(change.number - 1))
            self._bytes = 0
        self._changes.append(change)
        self._bytes += change.size
        self._wake()
        return True

    def end(self) -> None:
        """End the stream after what is queued."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self, seconds: float) -> Change | None:
        """The next change, or None after some time, or when there are no more."""
        if not self._changes and not self.ended:
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiter = None
        return self.next_now()

    def next_now(self) -> Change | None:
        """The next change if there is one."""
        if not self._changes:
            return None
        change = self._changes.popleft()
        self._bytes -= change.size
        return change

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self.ended and not self._changes
