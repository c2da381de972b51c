"""The verbs of an App for code without an event loop: Django, Flask, scripts, threads.

One loop in a thread of its own serves all callers of a process, so that many threads share one
connection and their enqueues share round trips.

    jobs = headrace.sync.App("postgresql://…")          # or headrace.sync.wrap(app)
    job = jobs.enqueue(send_mail.job(to="ada@example.com"))
    value = jobs.result(job.id, timeout=30)

Type checkers read the generated `sync.pyi`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from headrace import app as app_module
from headrace.admin.sync_artifacts import SyncArtifacts
from headrace.engine.base import Engine
from headrace.errors import InvalidSetting
from headrace.loops.loop_thread import LoopThread, blocking, refuse_to_block, run_on
from headrace.model.job import Job, NewJob

Value = TypeVar("Value")
Result = TypeVar("Result")

WOULD_BLOCK = "headrace.sync would block this event loop; use headrace.App and `await` here"


@blocking(app_module.App, "app", also=["task", "schedule", "add_schedule", "alert"])
class App:
    """An App whose verbs block. `.app` is the ordinary App behind it, which workers load."""

    app: app_module.App
    _thread: LoopThread

    def __init__(self, url: str | None = None, **given: Any) -> None:
        self._adopt(app_module.App(url, **given))

    def _adopt(self, app: app_module.App) -> None:
        self.app = app
        self._thread = LoopThread("headrace-sync", last=self._close_app, would_block=WOULD_BLOCK)

    @overload
    def enqueue(self, job: NewJob[Result], /, *, conn: Any = None) -> Job[Result]: ...
    @overload
    def enqueue(self, job: str, args: dict[str, Any] | None = None, **options: Any) -> Job: ...

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

    @property
    def artifacts(self) -> SyncArtifacts:
        """The files of jobs: the verbs of `app.artifacts`, which block."""
        return SyncArtifacts(self.app.artifacts, self._thread, self._run)

    @property
    def engine(self) -> Engine:
        """Where the jobs live. Its verbs need the loop: prefer those of this class."""
        return self.app.engine

    def close(self) -> None:
        """Close the connections and end the thread. The App can be used again. Callers that wait
        for an answer in other threads get an error. An App that a worker of this process runs is
        left to that worker.
        """
        self._thread.stop()

    def __enter__(self) -> Self:
        self._run(self.app.open())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, verb: Coroutine[Any, Any, Value]) -> Value:
        home = self.app.home
        if home is None or self._thread.serves(home):
            return self._thread.run(verb)
        # A worker runs this App, and we are in one of its handlers: its loop serves us too.
        refuse_to_block(verb, WOULD_BLOCK)
        return run_on(home, verb)

    async def _close_app(self) -> None:
        if self.app.home in (None, asyncio.get_running_loop()):
            await self.app.close()

    if TYPE_CHECKING:  # where the stub is not found

        def __getattr__(self, name: str) -> Any: ...


def wrap(app: app_module.App) -> App:
    """Return the blocking verbs of an App that is defined elsewhere. It keeps its tasks."""
    made = App.__new__(App)
    made._adopt(app)
    return made
