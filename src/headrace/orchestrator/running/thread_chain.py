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
from headrace.orchestrator.running import outcomes
from headrace.orchestrator.running.attempt import Attempt
from headrace.orchestrator.running.threads import NoThread, Threads
from headrace.task import Task

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext
    from headrace.orchestrator.running.slots import Slot

# Lay out as much as all slots do within this time.
SECONDS = 0.005
LIMIT = 200
# While jobs are laid out, threads do not tell of each that ends; the loop looks this often.
LOOK_SECONDS = 0.005


class Rest:
    """What a plain function returned is to be awaited: that is for the event loop."""

    __slots__ = ("context", "value")

    def __init__(self, value: Awaitable[Any], context: JobContext | None) -> None:
        self.value = value
        self.context = context


class Errand(asyncio.Future[None]):
    """One attempt in a thread. It stands where other attempts have their task: to cancel it means
    to leave the thread alone and to free its slot.
    """

    def __init__(
        self,
        attempt: Attempt,
        task: Task[..., Any],
        context: contextvars.Context,
        leave: Callable[[Errand], bool],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop=loop)  # to look for it costs more than all the rest
        self.attempt = attempt
        self.task = task
        self.context = context
        self.slot: Slot
        self.outcome: Outcome | Rest | None = None
        self.ended = 0.0
        self.begun = False
        self.over = False
        self.left = False
        # Who has its slot and its thread now.
        self.following: Errand | None = None
        self._leave = leave

    def cancel(self, msg: Any | None = None) -> bool:
        """Do not wait for it any longer. False: it is over."""
        return self._leave(self)


class Relay:
    """Errands that are laid out, and those in threads."""

    def __init__(
        self,
        *,
        threads: Threads,
        call: Callable[[Attempt, Task[..., Any]], Outcome | Rest | None],
        now: Callable[[], float],
        on_over: Callable[[Errand], None],
        on_collected: Callable[[], None],
    ) -> None:
        self.running = 0
        self._threads = threads
        self._call = call
        self._now = now
        self._on_over = on_over
        self._on_collected = on_collected
        self._lock = threading.Lock()
        self.laid_out: deque[Errand] = deque()
        self._over: deque[Errand] = deque()
        self._low_water = 0
        self._ringing = False
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    # --- on the event loop

    def room(self, slots: int, mean: float) -> int:
        """How many more may be laid out, when jobs take `mean` seconds."""
        if not self.running:
            return 0
        whole = min(int(SECONDS * slots / max(mean, 1e-9)), LIMIT)
        self._low_water = whole // 2
        return whole - len(self.laid_out)

    def lay_out(self, errand: Errand) -> None:
        """A thread may take it."""
        self.laid_out.append(errand)
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def take(self) -> Errand | None:
        """Take back what was laid out first."""
        with self._lock:
            return self.laid_out.popleft() if self.laid_out else None

    def withdraw(self) -> ClaimedJob | None:
        """Take back the job that was laid out first."""
        errand = self.take()
        return None if errand is None else errand.attempt.job

    def start(self, errand: Errand) -> None:
        """Run it in a thread of its own, in the slot that it has been given. Raises `NoThread` if
        it will not be begun.
        """
        self.running += 1
        try:
            self._threads.executor().submit(self._serve, errand)
        except (RuntimeError, MemoryError) as error:
            # The pool may have taken it in all the same, for the next of its threads to be idle.
            with self._lock:
                if errand.begun:
                    return
                errand.left = True
            self.running -= 1
            raise NoThread(error) from error

    def collect(self) -> None:
        """Hear of those that are over."""
        self._ringing = False  # first: what ends from now on rings again
        over = self._over
        if not over:
            return
        while over:
            errand = over.popleft()
            if errand.following is None:
                self.running -= 1
            self._on_over(errand)
        self._on_collected()

    def leave(self, errand: Errand) -> bool:
        """Leave its thread alone: what it returns is dropped. False if it is over."""
        with self._lock:
            if errand.over or errand.left:
                return False
            errand.left = True
            if errand.begun:
                self._threads.abandoned.add(errand)
        self.running -= 1
        return True

    def stop(self) -> None:
        """Lay out nothing any more."""
        with self._lock:
            self.laid_out.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        self.collect()
        if self.laid_out and self._timer is None:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    # --- in a thread

    def _serve(self, errand: Errand) -> None:
        with self._lock:
            if errand.left:
                return
            errand.begun = True
        following: Errand | None = errand
        while following is not None:
            errand = following
            try:
                errand.outcome = errand.context.run(self._call, errand.attempt, errand.task)
            except BaseException as error:  # a fault of ours must not cost a slot
                errand.outcome = outcomes.of_fault(errand.attempt.job, None, error)
            following = self._hand_over(errand)

    def _hand_over(self, errand: Errand) -> Errand | None:
        """It is over: give its slot and this thread to the next, and see to it that the loop hears
        of it.
        """
        following = None
        with self._lock:
            if errand.left:
                self._threads.abandoned.discard(errand)
                return None
            errand.over = True
            errand.ended = now = self._now()
            laid_out = self.laid_out
            if laid_out and type(errand.outcome) is not Rest:
                following = errand.following = laid_out.popleft()
                following.slot, following.begun = errand.slot, True
                following.attempt.start(now)
            self._over.append(errand)
            # Waking the loop is dear; whoever ends before it has looked is found by the same look.
            ring = not self._ringing and (following is None or len(laid_out) <= self._low_water)
            if ring:
                self._ringing = True
        if ring:
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                self._loop.call_soon_threadsafe(self.collect)
        return following
