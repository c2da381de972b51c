"""What a worker did in each minute, written when the minute is over.

Nothing is counted twice: a record is named by its minute and by this start of this worker, and is
written again, after an error that leaves it open whether it was stored, with the same content only.
What a worker that is killed did in its last minute is not counted.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

from headrace.clock import Clock
from headrace.engine.base import Records
from headrace.monitor.series.records import MINUTE, Counts, label
from headrace.telemetry import TaskCounters, Telemetry

# Far less than the age at which minutes are folded into hours: a record that was folded and deleted
# must not be written again.
REPEAT_FOR = 3_600.0
# So many are compared before the event loop may do something else.
PIECE = 100


class MinuteWriter:
    """Writes the difference between a worker's counters now and a minute ago."""

    def __init__(
        self, *, engine: Records, telemetry: Telemetry, worker: Callable[[], str], clock: Clock
    ) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._worker = worker
        self._minute = MINUTE.start(clock.now())
        self._start = secrets.token_hex(4)
        # Counters as they were when the last minute was taken.
        self._written = Telemetry()
        for key, counters in telemetry.tasks.items():
            self._written.tasks[key] = _copy(counters)
        # A record that may or may not have been stored, and since when.
        self._pending: tuple[str, bytes, float] | None = None

    def fold(self, key: tuple[str, str]) -> None:
        """Follow the counters, of which some are counted among the others from now on."""
        self._written.fold(key)

    async def write(self, now: float) -> None:
        """Store the minute, if it is over and something was done in it."""
        minute, over, start = MINUTE.start(now), self._minute, self._start
        if minute == over:
            return
        # First: if this fails, what is done from now on goes into a record of its own.
        self._minute = minute
        if minute < over:
            # The clock was put back: this minute may have been written already.
            self._start = secrets.token_hex(4)
        await self._store(over, start)

    async def finish(self) -> None:
        """Store the minute that is not over: the worker stops."""
        await self._store(self._minute, self._start)

    async def _store(self, minute: float, start: str) -> None:
        await self._repeat()
        counts = await self._take()
        if counts.attempts.tasks:
            key = f"{label(minute)}/{self._worker()}~{start}"
            self._pending = (key, counts.encode(), time.monotonic())
            await self._repeat()

    async def _repeat(self) -> None:
        if self._pending is not None:
            key, body, since = self._pending
            if time.monotonic() - since < REPEAT_FOR:
                await self._engine.record_put(MINUTE.kind, key, body)
            self._pending = None

    async def _take(self) -> Counts:
        """Return what was done since the last time. Each task in a queue is compared and noted
        without interruption, so that nothing that is counted meanwhile gets lost.
        """
        counts, written = Counts(), self._written.tasks
        for number, (key, counters) in enumerate(list(self._telemetry.tasks.items()), start=1):
            earlier = written.get(key)
            if earlier is None:
                earlier = TaskCounters(counters.task, counters.queue)
            if counters.attempts != earlier.attempts:
                counts.attempts.tasks[key] = more = counters.since(earlier)
                more.errors, counters.errors = counters.errors, {}
                written[key] = _copy(counters)
            if number % PIECE == 0:
                await asyncio.sleep(0)
        return counts


def _copy(counters: TaskCounters) -> TaskCounters:
    copied = TaskCounters(counters.task, counters.queue)
    copied.add(counters)
    copied.errors = {}
    return copied
