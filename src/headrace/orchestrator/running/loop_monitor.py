"""Sees an event loop that a handler blocks, from outside: with the job and the culprit's stack."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterable

from headrace.clock import Clock
from headrace.orchestrator.running.attempt import Attempt, monotonic
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.watch")


class LoopBlockMonitor:
    """Asks the loop for a sign of life and counts the seconds until it comes.

    `look` is called by the lease thread; the sign of life is given on the loop's own thread, which
    makes this object.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        block_seconds: float,
        grace_seconds: float,
        clock: Clock,
        attempts: Callable[[], Iterable[Attempt]],
        telemetry: Telemetry,
    ) -> None:
        self.block_seconds = block_seconds
        self.grace_seconds = grace_seconds
        self.clock = clock
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._attempts = attempts
        self._telemetry = telemetry
        self._asked_at = 0.0
        self._answered = True
        self._reported = False

    def check(self) -> bool:
        """Look once. True: the loop hangs for good, in a job that is long past its time."""
        now = monotonic()
        if self._answered:
            self._answered = False
            self._reported = False
            self._asked_at = now
            self._loop.call_soon_threadsafe(self._answer)
            return False
        if now - self._asked_at < self.block_seconds:
            return False
        culprits = self._culprits()
        if not self._reported:
            self._reported = True
            self._telemetry.blocks += 1
            self._report(now - self._asked_at, culprits)
        if not culprits:
            return False
        late = now + self.clock.offset - self.grace_seconds
        return all(attempt.deadline < late for attempt in culprits)

    def _answer(self) -> None:
        """On the loop: it lives."""
        waited = monotonic() - self._asked_at
        if waited >= self.block_seconds:
            self._telemetry.block_seconds += waited
            if not self._reported:
                # A C function that kept the interpreter's lock: the watching thread stood as well.
                self._telemetry.blocks += 1
                log.warning("The event loop was blocked for %.1f s, by whom was not seen", waited)
            else:
                log.warning("The event loop goes on after %.1f s", waited)
        self._answered = True

    def _culprits(self) -> list[Attempt]:
        """The attempt whose task is on the loop now. If that is a task which a handler has
        started, it cannot be told which, so all running ones.
        """
        current = asyncio.current_task(self._loop)
        running = list(self._attempts())
        exact = [attempt for attempt in running if attempt.task is current]
        return exact or running

    def _report(self, seconds: float, culprits: list[Attempt]) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(no stack)"
        jobs = ", ".join(
            f"job {attempt.job.id} ({attempt.job.task}, attempt {attempt.job.attempt})"
            for attempt in culprits[:5]
        )
        log.warning(
            "The event loop has been blocked for %.1f s by %s. Leases are kept, but nothing else "
            "runs; make the handler a plain `def`, or await. Stack of the culprit:\n%s",
            seconds,
            jobs or "something that is no job",
            stack,
        )
