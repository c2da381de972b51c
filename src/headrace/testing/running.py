"""Running jobs in a test, everything that is due and what becomes due, and looking at them."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

import msgspec

from headrace import sync
from headrace.app import App
from headrace.errors import RetryLater, Snooze
from headrace.model.durable.context import Context
from headrace.model.job import ClaimedJob, Job, JobFilter
from headrace.orchestrator import CallNext, JobOrchestrator
from headrace.task import Task
from headrace.task.codec import encode

if TYPE_CHECKING:
    from headrace.dispatchers.cron.dispatcher import CronDispatcher

# Rounding must not leave the clock just before a due time.
TICK = 0.001
TOLERANCE = 0.5
PAGE = 1_000


class RunnerOptions(TypedDict, total=False):
    """The options of `run`."""

    advance: float
    queues: Sequence[str] | None
    max_workers: int | None
    raise_errors: bool
    isolate: bool
    schedules: bool


class Runner(Protocol):
    """The fixture `headrace_run`: `run`, for the App of the test."""

    async def __call__(self, **options: Unpack[RunnerOptions]) -> list[Job]:
        """See `headrace.testing.run`."""


async def run(
    app: App,
    *,
    advance: float = 0.0,
    queues: Sequence[str] | None = None,
    max_workers: int | None = None,
    raise_errors: bool = False,
    isolate: bool = False,
    schedules: bool = True,
) -> list[Job]:
    """Run every job that may run, and return those that were run, in the order they started.

    `advance` moves the App's clock on by so many seconds, from due time to due time, so that
    delayed jobs and retries run when their time comes; nobody waits. `raise_errors` raises the
    first error of a handler when all is done. Schedules that are declared in code, or were added
    by `app.schedules`, fire at their times from the first `run` on, unless `schedules` is false:
    that leaves them as they are. Handlers with `isolate="process"` run in this
    process, where what a test has patched is seen, unless `isolate` is true.
    """
    await app.open()
    record = _Record()
    end = app.clock.now() + advance
    cron = await _dispatcher(app) if schedules else None
    with contextlib.nullcontext() if isolate else _in_this_process(app.tasks.values()):
        while True:
            # A worker of its own for every moment: its lease would not survive the leap.
            worker = JobOrchestrator(
                app, queues=queues, max_workers=max_workers, middleware=[record]
            )
            await worker.run_until_idle()
            due = await app.engine.promote_due(1)
            if due.moved or (cron is not None and await _fire(cron)):
                continue
            # Real time passes while the engine is asked: a delay as long as `advance` is meant too.
            left = end - app.clock.now() + TOLERANCE
            times = [] if cron is None else cron.next_times.values()
            next_in = min(
                math.inf if due.next_in is None else due.next_in,
                *(time.timestamp() - app.clock.now() for time in times),
                math.inf,
            )
            if next_in > left:
                break
            app.clock.advance(max(next_in, 0.0) + TICK)
    app.clock.advance(max(end - app.clock.now(), 0.0) if advance else 0.0)
    if raise_errors and record.errors:
        raise record.errors[0]
    return [app._openable(job) for job in await app.engine.get(list(record.ids))]


async def _dispatcher(app: App) -> CronDispatcher | None:
    """Return what fires the schedules of an App, if it has used any, after storing those in its
    code. It runs no loop of its own.
    """
    if "schedules" not in vars(app):
        return None
    from headrace.dispatchers.cron.dispatcher import CronDispatcher  # noqa: PLC0415 - an extra

    cron = CronDispatcher(app)
    await cron.sync()
    return cron


async def _fire(cron: CronDispatcher) -> bool:
    """Make the jobs of schedules that are due. Return whether there were any."""
    made = cron.firing.made
    cron.changed()  # another may have been added by a handler
    await cron.tick()
    await cron.stop()  # it has not been started: this only lets go of the App
    return cron.firing.made > made


def run_blocking(jobs: sync.App, **options: Unpack[RunnerOptions]) -> list[Job]:
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


async def enqueued(
    app: App, task: Task[..., Any] | str | None = None, /, **arguments: Any
) -> list[Job]:
    """The jobs that were enqueued, oldest first, whatever has become of them.

    Only those of `task`, where one is given; only those with these arguments, others aside.

        [job] = await enqueued(app, send_invoice, customer_id=5)
        assert not await enqueued(app, send_reminder)
    """
    name = task.name if isinstance(task, Task) else task
    wanted = {key: msgspec.json.decode(encode(value)) for key, value in arguments.items()}
    filter = JobFilter(tasks=() if name is None else (name,))
    found: list[Job] = []
    cursor: str | None = None
    while True:
        page = await app.list(filter, cursor=cursor, limit=PAGE)
        found += [job for job in page.jobs if _has(job, wanted)]
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


def _has(job: Job, wanted: dict[str, Any]) -> bool:
    args = job.args
    return all(name in args and args[name] == value for name, value in wanted.items())
