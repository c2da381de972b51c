"""Hooks on the stages of jobs, for applications that keep a status of their own.

    @app.on_stage
    async def store_status(job, stage, done):
        await database.execute("UPDATE documents SET status = …", stage, job.id, job.token)

A hook is called on the worker's event loop: before a stage begins (`done` is False), and after its
result is stored (`done` is True). `stage` is what the job shows from then on.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

from headrace.errors import InvalidSetting
from headrace.model.job import ClaimedJob

StageHook = Callable[[ClaimedJob, str, bool], Awaitable[None]]


class StageHooks:
    """The hooks of an App and of a worker's middleware; later ones of the App are seen, too."""

    __slots__ = ("of_app", "of_worker")

    def __init__(self, of_app: Sequence[StageHook], of_worker: Sequence[StageHook] = ()) -> None:
        self.of_app = of_app
        self.of_worker = of_worker

    async def call(self, job: ClaimedJob, stage: str, done: bool) -> None:
        """Call one after the other. The first error is raised, and ends it."""
        for hook in (*self.of_app, *self.of_worker):
            await hook(job, stage, done)


def check_hook(hook: StageHook) -> StageHook:
    """Refuse what cannot be awaited: it would block the worker, or never run."""
    called = hook if inspect.isroutine(hook) else getattr(hook, "__call__", None)  # noqa: B004
    if not inspect.iscoroutinefunction(called):
        raise InvalidSetting(
            f"on_stage takes an `async def` function of job, stage and done, got {hook!r}"
        )
    return hook
