"""What `headrace bench` does: take jobs in three ways, work them off, wake an idle worker."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import msgspec

from headrace.app import App
from headrace.cli.bench.store import Scratch
from headrace.cli.output import Progress, progress
from headrace.config import Settings
from headrace.model.job import NewJob
from headrace.orchestrator import JobOrchestrator
from headrace.task import Task

LEAST = 100
CALLERS = 100
SAMPLES = 100
# A slow engine is measured with fewer jobs rather than for ever.
STEP_SECONDS = 10.0
DRAIN_SECONDS = 60.0
# Between two samples: the worker has nothing to do again.
QUIET_SECONDS = 0.02


class Measured(msgspec.Struct, kw_only=True):
    """Jobs per second, and milliseconds from the enqueue call to the first line of the task.

    None: the engine was too slow for the time that a step has.
    """

    enqueue_one: float | None = None
    enqueue_hundred: float | None = None
    enqueue_many: float | None = None
    stored: int = 0
    drain: float | None = None
    latency_p50: float | None = None
    latency_p99: float | None = None


class Steps:
    """The steps, one after the other, on one store."""

    def __init__(self, app: App, jobs: int, *, quiet: bool) -> None:
        self.app = app
        self.jobs = jobs
        self.quiet = quiet
        self.measured = Measured()
        self.starts: list[float] = []
        self.started = asyncio.Event()
        self.wanted = 0
        self.task: Task[[int], None] = app.task(self._touch())

    def _touch(self) -> Callable[[int], Awaitable[None]]:
        async def touch(number: int) -> None:
            self.starts.append(time.perf_counter())
            if len(self.starts) >= self.wanted:
                self.started.set()

        return touch

    async def take_in(self) -> None:
        """One after the other, from a hundred callers at once, and many in one call."""
        measured = self.measured
        few = max(self.jobs // 10, LEAST)
        with self._progress("One after the other", few) as advance:
            measured.enqueue_one = await self._timed(self._callers(1, few, advance))
        with self._progress("100 callers at once", self.jobs) as advance:
            measured.enqueue_hundred = await self._timed(self._callers(CALLERS, self.jobs, advance))
        with self._progress("Many in one call", self.jobs) as advance:
            measured.enqueue_many = await self._timed(self._many(advance))

    async def work_off(self) -> None:
        """Everything that was stored, then single jobs to an idle worker."""
        total = self._wait_for(self.measured.stored)
        with self._progress("Running jobs", total) as advance:
            async with JobOrchestrator(self.app):
                end = time.monotonic() + DRAIN_SECONDS
                while not self.started.is_set() and time.monotonic() < end:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self.started.wait(), 0.1)
                    advance(len(self.starts))
                if len(self.starts) > 1:
                    seconds = self.starts[-1] - self.starts[0]
                    self.measured.drain = (len(self.starts) - 1) / seconds
                if self.started.is_set():
                    await self._latency()

    async def _latency(self) -> None:
        found = []
        with self._progress("Waking an idle worker", SAMPLES) as advance:
            for number in range(SAMPLES):
                await asyncio.sleep(QUIET_SECONDS)
                self._wait_for(len(self.starts) + 1)
                begin = time.perf_counter()
                await self.task.enqueue(number)
                await asyncio.wait_for(self.started.wait(), STEP_SECONDS)
                found.append(1_000 * (self.starts[-1] - begin))
                advance(number + 1)
        found.sort()
        self.measured.latency_p50 = found[len(found) // 2]
        self.measured.latency_p99 = found[len(found) * 99 // 100]

    async def _callers(self, callers: int, count: int, advance: Progress) -> int:
        numbers = _within(STEP_SECONDS, count)
        done = 0

        async def caller() -> None:
            nonlocal done
            for number in numbers:
                await self.task.enqueue(number)
                done += 1
                if done % 100 == 0:
                    advance(done)

        async with asyncio.TaskGroup() as together:
            for _ in range(callers):
                together.create_task(caller())
        return done

    async def _many(self, advance: Progress) -> int:
        jobs: Iterator[NewJob] = map(self.task.job, _within(STEP_SECONDS, self.jobs))
        return len(await self.app.enqueue_many(jobs, on_progress=advance))

    async def _timed(self, step: Awaitable[int]) -> float:
        begin = time.perf_counter()
        done = await step
        self.measured.stored += done
        return done / (time.perf_counter() - begin)

    def _wait_for(self, count: int) -> int:
        self.started.clear()
        self.wanted = count
        return count

    def _progress(self, label: str, total: int) -> contextlib.AbstractContextManager[Progress]:
        return progress(label, total, quiet=self.quiet)


def _within(seconds: float, count: int) -> Iterator[int]:
    """Numbers up to `count`, as long as there is time."""
    end = time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > end:
            return
        yield number


async def measure(
    settings: Settings, store: Scratch, jobs: int, *, quiet: bool
) -> tuple[str, Measured]:
    """Measure the empty store of these settings; answers what it is, and how fast."""
    app = App(settings=settings)
    try:
        await _whole(app.open())
        store.opened = True
        report = await app.engine.report()
        steps = Steps(app, jobs, quiet=quiet)
        await steps.take_in()
        await steps.work_off()
    finally:
        await app.close()
    return f"{report.engine} {report.server_version}", steps.measured


async def _whole(opening: Coroutine[Any, Any, None]) -> None:
    """Open, also when cancelled half-way: what is still being made cannot be removed."""
    task = asyncio.ensure_future(opening)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
