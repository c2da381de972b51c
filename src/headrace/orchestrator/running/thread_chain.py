"""Threads that go from one job to the next by themselves.

A handler that is a plain function runs in a thread. To ask the event loop for the next job means
two hand-overs, each of which waits for Python's lock: longer than a short job takes. So jobs are
laid out, as many as are done within moments, and a thread that is done takes the next of them. The
event loop hears of it afterwards and keeps the books.

Invariant: an errand is in one place at a time: laid out, in a thread, or over and not yet
collected. It moves under the lock, so a slot has one errand in a thread at most. One that was left
alone before a thread had begun it, is never begun; one that was left alone afterwards (its handler
does not stop) passes its slot on to nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from headrace.model.job import ClaimedJob
from headrace.model.outcome import Outcome
from headrace.orchestrator.running.attempt import Attempt
from headrace.orchestrator.running.outcomes import outcome_of_fault
from headrace.orchestrator.running.threads import NoThread, Threads
from headrace.task import Task

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext
    from headrace.orchestrator.running.slots import Slot

# Lay out as much as all slots do within this time.
OFFER_SECONDS = 0.005
OFFER_LIMIT = 200
# While jobs are laid out, threads do not tell of each that ends; the loop looks this often.
COLLECT_SECONDS = 0.005


class AwaitableResult:
    """What a plain function returned is to be awaited: that is for the event loop."""

    __slots__ = ("context", "value")

    def __init__(self, value: Awaitable[Any], context: JobContext | None) -> None:
        self.value = value
        self.context = context


class ThreadAttempt(asyncio.Future[None]):
    """One attempt in a thread. It stands where other attempts have their task: to cancel it means
    to leave the thread alone and to free its slot.
    """

    def __init__(
        self,
        attempt: Attempt,
        task: Task[..., Any],
        context: contextvars.Context,
        abandon: Callable[[ThreadAttempt], bool],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop=loop)  # to look for it costs more than all the rest
        self.attempt = attempt
        self.task = task
        self.context = context
        self.slot: Slot
        self.outcome: Outcome | AwaitableResult | None = None
        self.ended = 0.0
        self.begun = False
        self.over = False
        self.abandoned = False
        # Who has its slot and its thread now.
        self.successor: ThreadAttempt | None = None
        self._abandon = abandon

    def cancel(self, msg: Any | None = None) -> bool:
        """Do not wait for it any longer. False: it is over."""
        return self._abandon(self)


class ThreadChain:
    """Errands that are laid out, and those in threads."""

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
        """How many more may be laid out, when jobs take `mean` seconds."""
        if not self.running:
            return 0
        whole = min(int(OFFER_SECONDS * slots / max(mean, 1e-9)), OFFER_LIMIT)
        self._low_water = whole // 2
        return whole - len(self.offered)

    def offer(self, thread_attempt: ThreadAttempt) -> None:
        """A thread may take it."""
        self.offered.append(thread_attempt)
        if self._timer is None:
            self._timer = self._loop.call_later(COLLECT_SECONDS, self._collect_again)

    def take(self) -> ThreadAttempt | None:
        """Take back what was laid out first."""
        with self._lock:
            return self.offered.popleft() if self.offered else None

    def take_back_offered(self) -> ClaimedJob | None:
        """Take back the job that was laid out first."""
        thread_attempt = self.take()
        return None if thread_attempt is None else thread_attempt.attempt.job

    def start(self, thread_attempt: ThreadAttempt) -> None:
        """Run it in a thread of its own, in the slot that it has been given. Raises `NoThread` if
        it will not be begun.
        """
        self.running += 1
        try:
            self._threads.executor().submit(self._run_chain, thread_attempt)
        except (RuntimeError, MemoryError) as error:
            # The pool may have taken it in all the same, for the next of its threads to be idle.
            with self._lock:
                if thread_attempt.begun:
                    return
                thread_attempt.abandoned = True
            self.running -= 1
            raise NoThread(error) from error

    def collect(self) -> None:
        """Hear of those that are over."""
        self._wakeup_pending = False  # first: what ends from now on rings again
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
        """Leave its thread alone: what it returns is dropped. False if it is over."""
        with self._lock:
            if thread_attempt.over or thread_attempt.abandoned:
                return False
            thread_attempt.abandoned = True
            if thread_attempt.begun:
                self._threads.abandoned.add(thread_attempt)
        self.running -= 1
        return True

    def stop(self) -> None:
        """Lay out nothing any more."""
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

    def _run_chain(self, thread_attempt: ThreadAttempt) -> None:
        with self._lock:
            if thread_attempt.abandoned:
                return
            thread_attempt.begun = True
        successor: ThreadAttempt | None = thread_attempt
        while successor is not None:
            thread_attempt = successor
            try:
                thread_attempt.outcome = thread_attempt.context.run(
                    self._call, thread_attempt.attempt, thread_attempt.task
                )
            except BaseException as error:  # a fault of ours must not cost a slot
                thread_attempt.outcome = outcome_of_fault(thread_attempt.attempt.job, None, error)
            successor = self._finish_and_take_next(thread_attempt)

    def _finish_and_take_next(self, thread_attempt: ThreadAttempt) -> ThreadAttempt | None:
        """It is over: give its slot and this thread to the next, and see to it that the loop hears
        of it.
        """
        successor = None
        with self._lock:
            if thread_attempt.abandoned:
                self._threads.abandoned.discard(thread_attempt)
                return None
            thread_attempt.over = True
            thread_attempt.ended = now = self._now()
            offered = self.offered
            if offered and type(thread_attempt.outcome) is not AwaitableResult:
                successor = thread_attempt.successor = offered.popleft()
                successor.slot, successor.begun = thread_attempt.slot, True
                successor.attempt.start(now)
            self._over.append(thread_attempt)
            # Waking the loop is dear; whoever ends before it has looked is found by the same look.
            wake = not self._wakeup_pending and (
                successor is None or len(offered) <= self._low_water
            )
            if wake:
                self._wakeup_pending = True
        if wake:
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                self._loop.call_soon_threadsafe(self.collect)
        return successor
