"""Time limits: one timer looks at the deadlines of all slots, instead of one timer per job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from headrace.clock import Clock
from headrace.orchestrator.running.attempt import FOREVER, Attempt, Reason, monotonic

# Clocks of tests jump: look at least this often while jobs run.
LONGEST_PAUSE = 0.25


class Deadlines:
    """Tells attempts that run out of time, and gives up those that do not listen."""

    def __init__(
        self,
        *,
        clock: Clock,
        grace_seconds: float,
        attempts: Callable[[], Iterable[Attempt]],
        give_up: Callable[[Attempt], None],
        broken: Callable[[Attempt, BaseException], None],
    ) -> None:
        self.clock = clock
        self.grace_seconds = grace_seconds
        # When the timer rings. A slot compares its own deadline to this and calls `arm` if need be.
        self.next = FOREVER
        self._attempts = attempts
        self._give_up = give_up
        self._broken = broken
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> float:
        """The time that deadlines are measured by."""
        return monotonic() + self.clock.offset

    def arm(self, deadline: float) -> None:
        """Ring at `deadline`, or soon if that is far."""
        now = self.now()
        self.next = min(deadline, now + LONGEST_PAUSE)
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(self.next - now, 0.0), self._ring)

    def stop(self) -> None:
        """Ring no more."""
        if self._timer is not None:
            self._timer.cancel()
        self.next = FOREVER

    def _ring(self) -> None:
        """Look at every attempt. Whatever one of them does, the others are looked at as well, and
        the bell rings again.
        """
        now = self.now()
        earliest, running = FOREVER, False
        try:
            for attempt in list(self._attempts()):
                running = True
                try:
                    earliest = min(earliest, self._look_at(attempt, now))
                except Exception as error:
                    self._broken(attempt, error)
        finally:
            self.next = FOREVER
            if running:
                self.arm(earliest)

    def _look_at(self, attempt: Attempt, now: float) -> float:
        """Tell an attempt that its time is over, if it is. When to look again at the latest."""
        if attempt.task is not None and attempt.task.done():
            # Its own task would have settled it: somebody has cancelled all tasks there are.
            self._broken(attempt, RuntimeError("somebody has cancelled the task of this attempt"))
            return FOREVER
        if attempt.reason is None:
            if attempt.deadline > now:
                return attempt.deadline
            attempt.interrupt(Reason.TIMEOUT, now=now, patience=self.grace_seconds)
        elif attempt.patience_until <= now:
            self._impatient(attempt, now)
        return attempt.patience_until

    def _impatient(self, attempt: Attempt, now: float) -> None:
        if attempt.cooperative and attempt.task is not None:
            attempt.patience_until = now + self.grace_seconds + LONGEST_PAUSE
            attempt.cooperative = False
            attempt.task.cancel()  # leaves the thread behind and frees the slot
        else:
            self._give_up(attempt)
