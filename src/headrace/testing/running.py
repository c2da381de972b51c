"""Running jobs in a test: everything that is due, and by and by what becomes due."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from headrace import sync
from headrace.app import App
from headrace.errors import RetryLater, Snooze
from headrace.model.context import Context
from headrace.model.job import ClaimedJob, Job
from headrace.orchestrator import CallNext, JobOrchestrator
from headrace.task import Task

# Rounding must not leave the clock just before a due time.
TICK = 0.001
TOLERANCE = 0.5


class Runner(Protocol):
    """The fixture `headrace_run`: `run`, for the App of the test."""

    async def __call__(
        self,
        *,
        advance: float = 0.0,
        queues: Sequence[str] | None = None,
        max_workers: int | None = None,
        raise_errors: bool = False,
        isolate: bool = False,
    ) -> list[Job]:
        """See `headrace.testing.run`."""


async def run(
    app: App,
    *,
    advance: float = 0.0,
    queues: Sequence[str] | None = None,
    max_workers: int | None = None,
    raise_errors: bool = False,
    isolate: bool = False,
) -> list[Job]:
    """Run every job that may run, and return those that were run, in the order they started.

    `advance` moves the App's clock on by so many seconds, from due time to due time, so that
    delayed jobs and retries run when their time comes; nobody waits. `raise_errors` raises the
    first error of a handler when all is done. Handlers with `isolate="process"` run in this
    process, where what a test has patched is seen, unless `isolate` is true.
    """
    await app.open()
    record = _Record()
    end = app.clock.now() + advance
    with contextlib.nullcontext() if isolate else _in_this_process(app.tasks.values()):
        while True:
            # A worker of its own for every moment: its lease would not survive the leap.
            worker = JobOrchestrator(
                app, queues=queues, max_workers=max_workers, middleware=[record]
            )
            await worker.run_until_idle()
            due = await app.engine.promote_due(1)
            if due.moved:
                continue
            # Real time passes while the engine is asked: a delay as long as `advance` is meant too.
            left = end - app.clock.now() + TOLERANCE
            if due.next_in is None or due.next_in > left:
                break
            app.clock.advance(max(due.next_in, 0.0) + TICK)
    app.clock.advance(max(end - app.clock.now(), 0.0) if advance else 0.0)
    if raise_errors and record.errors:
        raise record.errors[0]
    return await app.engine.get(list(record.ids))


def run_blocking(jobs: sync.App, **options: Any) -> list[Job]:
    """The same for tests without an event loop, whose program uses `headrace.sync`."""
    return jobs._run(run(jobs.app, **options))


class _Record:
    """A layer around all jobs that remembers which there were and what they raised."""

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}
        self.errors: list[Exception] = []

    async def __call__(self, call_next: CallNext, job: ClaimedJob, context: Context) -> Any:
        self.ids.setdefault(job.id)
        try:
            return await call_next()
        except (RetryLater, Snooze):
            raise
        except Exception as error:
            self.errors.append(error)
            raise


@contextlib.contextmanager
def _in_this_process(tasks: Iterable[Task[..., Any]]) -> Iterator[None]:
    isolated = [task for task in tasks if task.kind == "process"]
    for task in isolated:
        task.kind = "async" if inspect.iscoroutinefunction(task.function) else "thread"
    try:
        yield
    finally:
        for task in isolated:
            task.kind = "process"
