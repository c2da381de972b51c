"""Detects a blocked event loop from a thread, and logs the job and the stack that block it."""

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
    """Schedules a callback on the event loop and measures how long it takes to run.

    `check` is called by the lease thread. The object is made on the loop's own thread.
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
        self._scheduled_at = 0.0
        self._ran = True
        self._reported = False

    def check(self) -> bool:
        """Check once. Return True if the loop hangs in a job that is long past its time limit."""
        now = monotonic()
        if self._ran:
            self._ran = False
            self._reported = False
            self._scheduled_at = now
            self._loop.call_soon_threadsafe(self._on_loop)
            return False
        if now - self._scheduled_at < self.block_seconds:
            return False
        suspects = self._suspects()
        if not self._reported:
            self._reported = True
            self._telemetry.blocks += 1
            self._report(now - self._scheduled_at, suspects)
        if not suspects:
            return False
        late = now + self.clock.offset - self.grace_seconds
        return all(attempt.deadline < late for attempt in suspects)

    def _on_loop(self) -> None:
        """On the loop: the callback has run."""
        waited = monotonic() - self._scheduled_at
        if waited >= self.block_seconds:
            self._telemetry.block_seconds += waited
            if not self._reported:
                # A C function held the interpreter's lock: the lease thread stood still as well.
                self._telemetry.blocks += 1
                log.warning("The event loop was blocked for %.1f s; the job was not seen", waited)
            else:
                log.warning("The event loop goes on after %.1f s", waited)
        self._ran = True

    def _suspects(self) -> list[Attempt]:
        """Return the attempt whose task is on the loop now. If a handler has started that task, its
        job is not known: return all attempts that run.
        """
        current = asyncio.current_task(self._loop)
        running = list(self._attempts())
        exact = [attempt for attempt in running if attempt.task is current]
        return exact or running

    def _report(self, seconds: float, suspects: list[Attempt]) -> None:
        frame = sys._current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(no stack)"
        jobs = ", ".join(
            f"job {attempt.job.id} ({attempt.job.task}, attempt {attempt.job.attempt})"
            for attempt in suspects[:5]
        )
        log.warning(
            "The event loop has been blocked for %.1f s by %s. Leases are renewed, but nothing "
            "else runs; make the handler a plain `def`, or await. Stack:\n%s",
            seconds,
            jobs or "code outside of any job",
            stack,
        )
