"""The verbs of an App for code without an event loop: Django, Flask, scripts, threads.

One loop in a thread of its own serves all callers of a process, so that many threads share one
connection and their enqueues share round trips.

    jobs = headrace.sync.App("postgresql://…")          # or headrace.sync.wrap(app)
    job = jobs.enqueue(send_mail.job(to="ada@example.com"))
    value = jobs.result(job.id, timeout=30)
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Self, TypeVar

from headrace import app as app_module
from headrace.engine.base import Engine
from headrace.enqueue import OnProgress
from headrace.errors import InvalidSetting
from headrace.loop_thread import LoopThread, refuse_to_block, run_on
from headrace.model.job import Job, JobFilter, NewJob
from headrace.model.views import Delivery, JobPage

T = TypeVar("T")

WOULD_BLOCK = "headrace.sync would block this event loop; use headrace.App and `await` here"


class App:
    """An App whose verbs block. `.app` is the ordinary App behind it, which workers load."""

    def __init__(self, url: str | None = None, **given: Any) -> None:
        self._adopt(app_module.App(url, **given))

    def _adopt(self, app: app_module.App) -> None:
        self.app = app
        self.task = app.task
        self.schedule = app.schedule
        self.add_schedule = app.add_schedule
        self._thread = LoopThread("headrace-sync", last=self._close_app, would_block=WOULD_BLOCK)

    # -- verbs ---------------------------------------------------------------------------------

    def enqueue(self, job: NewJob | str, args: dict[str, Any] | None = None, **options: Any) -> Job:
        """Store a job by task name and arguments, with the options of `task.options(…)`; or one
        made by `task.job(…)`, which has its own: only `conn` may be given beside it.
        """
        if isinstance(job, str):
            return self._run(self.app.enqueue(job, args, **options))
        connection = options.pop("conn", None)
        if args is not None or options:
            named = ", ".join(["args"] * (args is not None) + list(options))
            raise InvalidSetting(
                f"a job made by `job` has its arguments and options, got also {named}; "
                "make it by task.options(…).job(…)"
            )
        return self._run(self.app.enqueue_job(job, connection=connection))

    def enqueue_many(
        self, jobs: Iterable[NewJob], *, on_progress: OnProgress | None = None
    ) -> Sequence[Job]:
        """Store any number of jobs in order, streamed in bounded batches."""
        return self._run(self.app.enqueue_many(jobs, on_progress=on_progress))

    def get(self, job_id: str) -> Job:
        """One job."""
        return self._run(self.app.get(job_id))

    def list(
        self, filter: JobFilter | None = None, *, cursor: str | None = None, limit: int = 50
    ) -> JobPage:
        """A page of jobs, newest first."""
        return self._run(self.app.list(filter, cursor=cursor, limit=limit))

    def result(self, job_id: str, timeout: float | None = None) -> Any:
        """Wait for a job and answer what its handler returned."""
        return self._run(self.app.result(job_id, timeout))

    def cancel(self, job_id: str, reason: str = "cancelled") -> Job:
        """Cancel a job."""
        return self._run(self.app.cancel(job_id, reason))

    def retry(self, job_id: str, *, from_stage: str | None = None) -> Job:
        """Run a finished job again, from a stage on if one is given; or a scheduled one now."""
        return self._run(self.app.retry(job_id, from_stage=from_stage))

    def signal(self, job_id: str, event: str, value: Any = None) -> Delivery:
        """Deliver an event to a job that waits for it, or will."""
        return self._run(self.app.signal(job_id, event, value))

    def why(self, job_id: str) -> Sequence[str]:
        """Why is it not running? In sentences."""
        return self._run(self.app.why(job_id))

    @property
    def engine(self) -> Engine:
        """Where the jobs live. Its verbs need the loop: prefer those of this class."""
        return self.app.engine

    def open(self) -> None:
        """Connect now, rather than at the first verb."""
        self._run(self.app.open())

    def close(self) -> None:
        """Close the connections and end the thread. The App can be used again. Whoever waits for
        an answer meanwhile is told by an error. An App that a worker of this process runs is left
        to that worker.
        """
        self._thread.stop()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the thread ----------------------------------------------------------------------------

    def _run(self, verb: Coroutine[Any, Any, T]) -> T:
        home = self.app.home
        if home is None or self._thread.serves(home):
            return self._thread.run(verb)
        # A worker runs this App, and we are in one of its handlers: its loop serves us too.
        refuse_to_block(verb, WOULD_BLOCK)
        return run_on(home, verb)

    async def _close_app(self) -> None:
        if self.app.home in (None, asyncio.get_running_loop()):
            await self.app.close()


def wrap(app: app_module.App) -> App:
    """The blocking verbs of an App that is defined elsewhere. It keeps its tasks."""
    made = App.__new__(App)
    made._adopt(app)
    return made
