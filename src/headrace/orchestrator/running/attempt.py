"""One try at one job, from the moment a slot takes it."""

from __future__ import annotations

import asyncio
import time
from enum import Enum

from headrace.model.job import ClaimedJob

FOREVER = float("inf")


class Reason(Enum):
    """Why an attempt was told to stop before its handler came to an end."""

    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    LOST = "lost"


class Attempt:
    """What is known about a running attempt. Times are `time.monotonic` plus the clock's offset."""

    __slots__ = (
        "abandoned",
        "begun",
        "cooperative",
        "deadline",
        "job",
        "noticed",
        "over",
        "patience_until",
        "reason",
        "started",
        "suspended",
        "task",
    )

    def __init__(self, job: ClaimedJob, started: float) -> None:
        self.job = job
        self.start(started)
        self.reason: Reason | None = None
        # Also a future, if its thread needs no task on the loop.
        self.task: asyncio.Future[None] | None = None
        # Cancelled before its first step, a task would end without a word: it looks at `reason`.
        self.begun = False
        # A handler in a thread cannot be cancelled: it is told, and has to look.
        self.cooperative = False
        # Whether the handler has seen that it should stop, or was told to leave.
        self.noticed = False
        self.suspended = False
        self.patience_until = FOREVER
        self.abandoned = False
        # Its outcome has been told: whatever its handler left behind begins nothing any more.
        self.over = False

    def start(self, now: float) -> None:
        """Its handler begins; the time limit counts from now."""
        self.started = now
        self.count_from(now)

    def count_from(self, now: float | None) -> None:
        """The time limit counts from now. None: not yet, because its handler cannot begin."""
        timeout = self.job.timeout
        self.deadline = FOREVER if timeout is None or now is None else now + timeout

    def interrupt(self, reason: Reason, *, now: float, patience: float) -> None:
        """Tell the handler to stop. The first reason counts, except that a lost lease beats all."""
        if self.reason is not None and reason is not Reason.LOST:
            return
        self.reason = reason
        self.patience_until = now + patience
        if self.cooperative and reason is Reason.CANCELLED:
            return  # it may look at `ctx.cancelled` and leave in good order
        if self.task is not None and self.begun:
            self.task.cancel()

    def in_its_task(self) -> bool:
        """Whether the event loop is running this attempt's task just now.

        Where it is not, an exception in that task's coroutine was raised by nobody's handler: the
        loop has ended, and Python closes what was left waiting. Nothing may be begun any more.
        """
        task = self.task
        return task is None or asyncio.current_task(task.get_loop()) is task


def monotonic() -> float:
    """The clock of durations on this machine."""
    return time.monotonic()
