"""`headrace bench`: how fast your own engine is, measured beside your jobs and not on them.

Jobs are taken in three ways and worked off, and an idle worker is woken.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import click
import msgspec

from headrace.app import App
from headrace.cli.bench.store import Scratch, scratch
from headrace.cli.command import Command, option
from headrace.cli.errors import notice
from headrace.cli.formatting import plural
from headrace.cli.output import Columns, Progress, print_json, print_line, print_table, progress
from headrace.cli.session import CliSession
from headrace.config import Settings
from headrace.engine.stored_text import redacted
from headrace.errors import InvalidInput
from headrace.loops.signals import on_stop_signals
from headrace.model.job import NewJob
from headrace.orchestrator import JobOrchestrator
from headrace.task import Task

LEAST = 100
MOST = 1_000_000
CALLERS = 100
SAMPLES = 100
# A slow engine is measured with fewer jobs rather than for ever.
STEP_SECONDS = 10.0
DRAIN_SECONDS = 60.0
# Between two samples: the worker has nothing to do again.
QUIET_SECONDS = 0.02


@click.command("bench", cls=Command)
@option("--jobs", "N", "Jobs for each step, 100 to 1000000.", type=int, default=10000)
async def bench(session: CliSession, *, jobs: int) -> int:
    """Measure how fast your engine stores and runs jobs.

    It uses a separate store next to yours (a file, a schema or a namespace whose name begins with
    headrace_bench), which is removed afterwards. Your jobs are not touched, but the database server
    is busy meanwhile, two minutes at most.

    The jobs do nothing, and the worker runs in this process with as many slots as yours have.

      headrace bench
      headrace bench --url postgresql://app@db/app --jobs 50000 --json
    """
    if not LEAST <= jobs <= MOST:
        raise InvalidInput(f"--jobs must be between {LEAST} and {MOST:,}, got {jobs}")
    settings = session.settings
    if settings.app is not None and session.url is None:
        settings = session.load_app().settings
    if session.remote:
        notice(f"note: this measures the engine itself: {redacted(settings.url)}")
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a command runs in a task
    # A signal must not leave our store behind. Also Ctrl-C is handled here: a program that was
    # started in the background does not get it otherwise.
    with on_stop_signals(lambda _: task.cancel()) as received:
        try:
            async with scratch(settings.url) as store:
                alike = msgspec.structs.replace(
                    settings, url=store.url, app=None, queues=(), worker_name=None
                )
                version, measured = await measure(alike, store, jobs, quiet=session.json)
        except asyncio.CancelledError:
            if received:
                return 128 + received[0]
            raise
    _answer(session, settings, version, measured, jobs)
    return 0


def _answer(
    session: CliSession, settings: Settings, version: str, measured: Measured, jobs: int
) -> None:
    if session.json:
        found: dict[str, Any] = msgspec.to_builtins(measured)
        shown = {"engine": version, "url": redacted(settings.url), "jobs": jobs}
        print_json({**shown, "slots": settings.max_workers, **found})
        return
    print_line(f"{version} at {redacted(settings.url)}")
    print_line()
    columns: Columns[tuple[str, float | None, str]] = {
        "MEASURED": lambda row: row[0],
        ">RESULT": lambda row: "too slow to tell" if row[1] is None else row[2].format(row[1]),
    }
    rate, span = "{:,.0f} jobs/s", "{:.1f} ms"
    slots = settings.max_workers
    rows = [
        ("enqueue, one after the other", measured.enqueue_one, rate),
        (f"enqueue, {CALLERS} callers at once", measured.enqueue_hundred, rate),
        ("enqueue, many in one call", measured.enqueue_many, rate),
        (f"run jobs that do nothing, {slots} slots", measured.drain, rate),
        ("idle worker, enqueue to first line, p50", measured.latency_p50, span),
        ("idle worker, enqueue to first line, p99", measured.latency_p99, span),
    ]
    print_table(columns, rows)
    print_line()
    print_line(
        f"With {plural(measured.stored, 'job')} in a store of its own, which is removed again."
    )


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
