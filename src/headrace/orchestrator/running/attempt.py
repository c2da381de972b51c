"""One attempt at one job, its arguments, and the time limits of all that run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from headrace.clock import Clock
from headrace.errors import SealRefused
from headrace.model.job import ClaimedJob
from headrace.model.sealed import key_of_args

if TYPE_CHECKING:
    from headrace.orchestrator.durable.followers import Followers
    from headrace.task import Task

FOREVER = float("inf")
# Clocks of tests jump: check at least this often while jobs run.
LONGEST_PAUSE = 0.25


def monotonic() -> float:
    """Return the clock of durations on this machine."""
    return time.monotonic()


class Reason(Enum):
    """Why an attempt was stopped before its handler returned."""

    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(slots=True, eq=False)
class Attempt:
    """A running attempt. Times are `time.monotonic` plus the clock's offset."""

    job: ClaimedJob
    started: float
    deadline: float = FOREVER
    reason: Reason | None = None
    # A plain future if its thread needs no task on the loop.
    task: asyncio.Future[None] | None = None
    # A task that is cancelled before its first step ends without running: check `reason`.
    begun: bool = False
    # A handler in a thread cannot be cancelled: it has to check `ctx.cancelled`.
    cooperative: bool = False
    # Whether the handler has seen that it should stop, or was left by `Suspended`.
    noticed: bool = False
    suspended: bool = False
    patience_until: float = FOREVER
    abandoned: bool = False
    # Its outcome is recorded: whatever its handler left running may start nothing any more.
    over: bool = False
    # Jobs to be stored with its outcome. Few handlers ask for any.
    followers: Followers | None = None

    def __post_init__(self) -> None:
        self.count_from(self.started)

    def start(self, now: float) -> None:
        """Its handler begins, and so does its time limit."""
        self.started = now
        self.count_from(now)

    def count_from(self, now: float | None) -> None:
        """Start the time limit. None: not yet, the handler cannot begin."""
        timeout = self.job.timeout
        self.deadline = FOREVER if timeout is None or now is None else now + timeout

    def interrupt(self, reason: Reason, *, now: float, patience: float) -> None:
        """Stop the handler. The first reason counts, except that a lost lease overrides it."""
        if self.reason is not None and reason is not Reason.LOST:
            return
        self.reason = reason
        self.patience_until = now + patience
        if self.cooperative and reason is Reason.CANCELLED:
            return  # it may check `ctx.cancelled` and return in good order
        if self.task is not None and self.begun:
            self.task.cancel()

    def in_its_task(self) -> bool:
        """Return whether the event loop is running this attempt's task just now.

        If not, an exception in its coroutine was not raised by the handler: the loop has ended, and
        Python closes coroutines that were left waiting. Nothing may be started any more.
        """
        task = self.task
        return task is None or asyncio.current_task(task.get_loop()) is task


class Deadlines:
    """Stops attempts that run out of time, and abandons those that do not stop.

    One timer checks all slots, instead of one timer per job.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        grace_seconds: float,
        attempts: Callable[[], Iterable[Attempt]],
        give_up: Callable[[Attempt], None],
        on_broken: Callable[[Attempt, BaseException], None],
    ) -> None:
        self.clock = clock
        self.grace_seconds = grace_seconds
        # When the timer fires. A slot compares its own deadline to this and calls `arm` if needed.
        self.next = FOREVER
        self._attempts = attempts
        self._give_up = give_up
        self._on_broken = on_broken
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> float:
        """Return the time that deadlines are measured by."""
        return monotonic() + self.clock.offset

    def arm(self, deadline: float) -> None:
        """Fire at `deadline`, or after `LONGEST_PAUSE` if that is sooner."""
        now = self.now()
        self.next = min(deadline, now + LONGEST_PAUSE)
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(self.next - now, 0.0), self._check_all)

    def interrupt(self, attempt: Attempt, reason: Reason, patience: float | None = None) -> None:
        """Stop an attempt, and abandon it if it runs on after `patience` (or the grace time)."""
        seconds = self.grace_seconds if patience is None else patience
        attempt.interrupt(reason, now=self.now(), patience=seconds)
        if attempt.patience_until < self.next:
            self.arm(attempt.patience_until)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.next = FOREVER

    def _check_all(self) -> None:
        """Check every attempt. Whatever one of them raises, the others are checked as well, and the
        timer is armed again.
        """
        now = self.now()
        earliest, running = FOREVER, False
        try:
            for attempt in list(self._attempts()):
                running = True
                try:
                    earliest = min(earliest, self._check(attempt, now))
                except Exception as error:
                    self._on_broken(attempt, error)
        finally:
            self.next = FOREVER
            if running:
                self.arm(earliest)

    def _check(self, attempt: Attempt, now: float) -> float:
        """Stop an attempt whose time is over. Return when to check it again at the latest."""
        if attempt.task is not None and attempt.task.done():
            # Its own task would have settled it: something has cancelled all tasks there are.
            error = RuntimeError("the task of this attempt was cancelled from outside")
            self._on_broken(attempt, error)
            return FOREVER
        if attempt.reason is None:
            if attempt.deadline > now:
                return attempt.deadline
            attempt.interrupt(Reason.TIMEOUT, now=now, patience=self.grace_seconds)
        elif attempt.patience_until <= now:
            self._run_out_of_patience(attempt, now)
        return attempt.patience_until

    def _run_out_of_patience(self, attempt: Attempt, now: float) -> None:
        if attempt.cooperative and attempt.task is not None:
            attempt.patience_until = now + self.grace_seconds + LONGEST_PAUSE
            attempt.cooperative = False
            attempt.task.cancel()  # abandons the thread and frees the slot
        else:
            self._give_up(attempt)


class UnreadableArguments(Exception):
    """The arguments of a job do not fit its handler."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


def arguments_of(job: ClaimedJob, task: Task[..., Any]) -> Any:
    """Return the arguments of a job as its handler takes them."""
    if task.encrypted:
        job.sealed = True
    if job.sealed and key_of_args(job.args) is not None:
        # It could not be opened when it was claimed, by the right key.
        raise SealRefused(
            f"job {job.id}: its arguments were refused: they were changed, or sealed for another "
            "job; enqueue it again"
        )
    try:
        return task.signature.decode(job.args)
    except Exception as error:  # a hook of the user's may raise anything
        raise UnreadableArguments(error) from error
