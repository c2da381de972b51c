"""Threads that go from one job to the next by themselves.

A handler that is a plain function runs in a thread. Asking the event loop for the next job takes
two hand-overs, each of which waits for Python's lock: longer than a short job runs. So jobs are
offered, as many as are done within moments, and a thread that is done takes the next of them. The
event loop collects the results afterwards.

Invariant: a thread attempt is in one state at a time: offered, in a thread, or over and not yet
collected. It moves under the lock, so a slot has at most one of them in a thread. One that is
abandoned before a thread began it never begins; one that is abandoned afterwards (its handler does
not stop) passes its slot on to none.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.model.job import ClaimedJob
from headrace.model.outcome import Outcome
from headrace.orchestrator.running.attempt import Attempt
from headrace.orchestrator.running.outcomes import outcome_of_fault
from headrace.orchestrator.running.threads import NoThread, Threads
from headrace.task import Task

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext
    from headrace.orchestrator.running.slot import Slot

# Offer as much as all slots do within this time.
OFFER_SECONDS = 0.005
OFFER_LIMIT = 200
# While jobs are offered, threads do not report each end; the loop collects this often.
COLLECT_SECONDS = 0.005


class AwaitableResult(msgspec.Struct, eq=False):
    """A plain function returned an awaitable: the event loop has to await it."""

    value: Awaitable[Any]
    context: JobContext | None


class ThreadAttempt(asyncio.Future[None]):
    """An attempt in a thread. It takes the place of the task that other attempts have: cancelling
    it abandons the thread and frees its slot.
    """

    def __init__(
        self,
        attempt: Attempt,
        task: Task[..., Any],
        context: contextvars.Context,
        abandon: Callable[[ThreadAttempt], bool],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop=loop)  # looking it up would cost more than all the rest
        self.attempt = attempt
        self.task = task
        self.context = context
        self.slot: Slot
        self.outcome: Outcome | AwaitableResult | None = None
        self.ended = 0.0
        self.begun = False
        self.over = False
        self.abandoned = False
        # The next attempt, in the same slot and thread.
        self.successor: ThreadAttempt | None = None
        self._abandon = abandon

    def cancel(self, msg: Any | None = None) -> bool:
        """Abandon it. Return False if it is over."""
        return self._abandon(self)


class ThreadChain:
    """Thread attempts that are offered, and those that run."""

    def __init__(
        self,
        *,
        threads: Threads,
        call: Callable[[Attempt, Task[..., Any]], Outcome | AwaitableResult | None],
        now: Callable[[], float],
        on_over: Callable[[ThreadAttempt], None],
        on_collected: Callable[[], None],
    ) -> None:
        self.running = 0
        self._threads = threads
        self._call = call
        self._now = now
        self._on_over = on_over
        self._on_collected = on_collected
        self._lock = threading.Lock()
        self.offered: deque[ThreadAttempt] = deque()
        self._over: deque[ThreadAttempt] = deque()
        self._low_water = 0
        self._wakeup_pending = False
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    # --- on the event loop

    def room(self, slots: int, mean: float) -> int:
        """Return how many more may be offered, when jobs take `mean` seconds."""
        if not self.running:
            return 0
        limit = min(int(OFFER_SECONDS * slots / max(mean, 1e-9)), OFFER_LIMIT)
        self._low_water = limit // 2
        return limit - len(self.offered)

    def offer(self, thread_attempt: ThreadAttempt) -> None:
        """Let a thread that is done take it."""
        self.offered.append(thread_attempt)
        if self._timer is None:
            self._timer = self._loop.call_later(COLLECT_SECONDS, self._collect_again)

    def take(self) -> ThreadAttempt | None:
        """Take back what was offered first."""
        with self._lock:
            return self.offered.popleft() if self.offered else None

    def take_back_offered(self) -> ClaimedJob | None:
        """Take back the job that was offered first."""
        thread_attempt = self.take()
        return None if thread_attempt is None else thread_attempt.attempt.job

    def start(self, thread_attempt: ThreadAttempt) -> None:
        """Run it in a thread, in the slot that it was given. Raises `NoThread` if it will not
        begin.
        """
        self.running += 1
        try:
            self._threads.executor().submit(self._run_chain, thread_attempt)
        except (RuntimeError, MemoryError) as error:
            # The pool may have queued it all the same, for the next of its threads to be idle.
            with self._lock:
                if thread_attempt.begun:
                    return
                thread_attempt.abandoned = True
            self.running -= 1
            raise NoThread(error) from error

    def collect(self) -> None:
        """Report those that are over."""
        self._wakeup_pending = False  # first: what ends from now on wakes the loop again
        over = self._over
        if not over:
            return
        while over:
            thread_attempt = over.popleft()
            if thread_attempt.successor is None:
                self.running -= 1
            self._on_over(thread_attempt)
        self._on_collected()

    def abandon(self, thread_attempt: ThreadAttempt) -> bool:
        """Leave its thread alone: what it returns is dropped. Return False if it is over."""
        with self._lock:
            if thread_attempt.over or thread_attempt.abandoned:
                return False
            thread_attempt.abandoned = True
            if thread_attempt.begun:
                self._threads.abandoned.add(thread_attempt)
        self.running -= 1
        return True

    def stop(self) -> None:
        """Offer nothing any more."""
        with self._lock:
            self.offered.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _collect_again(self) -> None:
        self._timer = None
        self.collect()
        if self.offered and self._timer is None:
            self._timer = self._loop.call_later(COLLECT_SECONDS, self._collect_again)

    # --- in a thread

    def _run_chain(self, first: ThreadAttempt) -> None:
        with self._lock:
            if first.abandoned:
                return
            first.begun = True
        current: ThreadAttempt | None = first
        while current is not None:
            attempt = current.attempt
            try:
                current.outcome = current.context.run(self._call, attempt, current.task)
            except BaseException as error:  # a fault of ours must not cost a slot
                current.outcome = outcome_of_fault(attempt.job, None, error)
            current = self._finish_and_take_next(current)

    def _finish_and_take_next(self, done: ThreadAttempt) -> ThreadAttempt | None:
        """Finish this attempt, start the next one in the same slot and thread, and wake the loop if
        needed.
        """
        successor = None
        with self._lock:
            if done.abandoned:
                self._threads.abandoned.discard(done)
                return None
            done.over = True
            done.ended = now = self._now()
            offered = self.offered
            if offered and type(done.outcome) is not AwaitableResult:
                successor = done.successor = offered.popleft()
                successor.slot, successor.begun = done.slot, True
                successor.attempt.start(now)
            self._over.append(done)
            # Waking the loop is expensive; one wake-up collects all that end before it.
            needed = successor is None or len(offered) <= self._low_water
            wake = needed and not self._wakeup_pending
            if wake:
                self._wakeup_pending = True
        if wake:
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                self._loop.call_soon_threadsafe(self.collect)
        return successor
