"""The verbs of an App for code without an event loop: Django, Flask, scripts, threads.

One loop in a thread of its own serves all callers of a process, so that many threads share one
connection and their enqueues share round trips.

    jobs = headrace.sync.App("postgresql://…")          # or headrace.sync.wrap(app)
    job = jobs.enqueue(send_mail.job(to="ada@example.com"))
    value = jobs.result(job.id, timeout=30)
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Self, TypeVar

from headrace import app as app_module
from headrace.engine.base import Engine
from headrace.errors import HeadraceError
from headrace.model.job import Job, JobFilter, NewJob
from headrace.model.views import Delivery, JobPage

T = TypeVar("T")


class App:
    """An App whose verbs block. `.app` is the ordinary App behind it, which workers load."""

    def __init__(self, url: str | None = None, **given: Any) -> None:
        self._adopt(app_module.App(url, **given))

    def _adopt(self, app: app_module.App) -> None:
        self.app = app
        self.task = app.task
        self.schedule = app.schedule
        self.add_schedule = app.add_schedule
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    # -- verbs ---------------------------------------------------------------------------------

    def enqueue(self, job: NewJob | str, args: dict[str, Any] | None = None, **options: Any) -> Job:
        """Store a job made by `task.job(…)`, or one by task name and arguments."""
        if isinstance(job, str):
            return self._run(self.app.enqueue(job, args, **options))
        return self._run(self.app.enqueue_job(job, connection=options.get("conn")))

    def enqueue_many(self, jobs: Iterable[NewJob]) -> Sequence[Job]:
        """Store any number of jobs in order, streamed in bounded batches."""
        return self._run(self.app.enqueue_many(jobs))

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
        """Close the connections and end the thread. The App can be used again."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None or self._process != os.getpid():
            return
        asyncio.run_coroutine_threadsafe(self.app.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the thread ----------------------------------------------------------------------------

    def _run(self, verb: Coroutine[Any, Any, T]) -> T:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not None:
            verb.close()
            raise HeadraceError(
                "headrace.sync would block this event loop; use headrace.App and `await` here"
            )
        return asyncio.run_coroutine_threadsafe(verb, self._started_loop()).result()

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A fork copies this object but not its thread: the child starts its own.
            if self._loop is None or self._process != os.getpid():
                loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_serve, args=(loop,), name="headrace-sync", daemon=True
                ).start()
                self._loop, self._process = loop, os.getpid()
                atexit.register(self.close)
            return self._loop


def wrap(app: app_module.App) -> App:
    """The blocking verbs of an App that is defined elsewhere. It keeps its tasks."""
    made = App.__new__(App)
    made._adopt(app)
    return made


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
