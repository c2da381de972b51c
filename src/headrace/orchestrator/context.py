"""What a handler is given: `headrace.Context`, made real."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

from headrace.artifacts import ArtifactStore
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable, InvalidInput, LeaseLost
from headrace.loop import backoff
from headrace.model.context import Context
from headrace.model.note import Entry, StoredEntry
from headrace.orchestrator.attempt import Attempt, Reason
from headrace.orchestrator.notes import Notes
from headrace.orchestrator.shelf import Shelf
from headrace.orchestrator.stages import Stages

log = logging.getLogger("headrace.job")

T = TypeVar("T")


class Services:
    """What all contexts of one orchestrator share."""

    __slots__ = ("artifacts", "engine", "loop", "notes", "payload_limit", "threads")

    def __init__(
        self,
        *,
        engine: Engine,
        notes: Notes,
        artifacts: ArtifactStore,
        threads: Callable[[], Executor],
        loop: asyncio.AbstractEventLoop,
        payload_limit: int,
    ) -> None:
        self.engine = engine
        self.notes = notes
        self.artifacts = artifacts
        self.threads = threads
        self.loop = loop
        self.payload_limit = payload_limit


class JobContext(Context):
    """One attempt at one job, as its handler sees it. Works from the loop and from threads."""

    def __init__(self, attempt: Attempt, services: Services) -> None:
        job = attempt.job
        self.job_id = job.id
        self.task = job.task
        self.queue = job.queue
        self.attempt = job.attempt
        self.max_attempts = job.max_attempts
        self.token = job.token
        # Without a key of the caller's the job's own id is what stays the same.
        self.key = job.key or job.id
        self.lane = job.lane
        self._attempt = attempt
        self._services = services
        # Once the handler tells its progress itself, stages leave it alone.
        self.own_progress = False

    def __getattr__(self, name: str) -> Any:
        """Make what few handlers use when it is first asked for."""
        match name:
            case "log":
                made: Any = logging.LoggerAdapter(
                    log, {"job_id": self.job_id, "task": self.task, "attempt": self.attempt}
                )
            case "artifacts":
                made = Shelf(self)
            case "_stages":
                made = Stages(self)
            case _:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        setattr(self, name, made)
        return made

    @property
    def cancelled(self) -> bool:
        """Whether this attempt should stop: cancelled, out of time, or its lease is lost."""
        attempt = self._attempt
        if attempt.reason is None:
            return False
        attempt.noticed = True
        return True

    def progress(self, percent: float, message: str | None = None) -> None:
        """Tell how far the job is, 0 to 100. Cheap: written in batches, the latest counts."""
        if not 0 <= percent <= 100:
            raise InvalidInput(f"progress must be between 0 and 100, got {percent!r}")
        self.own_progress = True
        self._services.notes.progress(self._attempt.job, progress=float(percent), message=message)

    async def stage(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        done: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a named step once; later attempts get its kept result without running it again."""
        stages: Stages = self._stages
        return await stages.run(name, function, args, kwargs, done=done)

    # --- for stages and artifacts

    @property
    def store(self) -> ArtifactStore:
        """Where the files of all jobs are."""
        return self._services.artifacts

    @property
    def threads(self) -> Executor:
        """Where functions that block may run."""
        return self._services.threads()

    @property
    def payload_limit(self) -> int:
        """How many bytes a value kept with the job may have."""
        return self._services.payload_limit

    @property
    def in_a_thread(self) -> bool:
        """Whether the caller runs on a loop of its own, in the thread of a handler."""
        return asyncio.get_running_loop() is not self._services.loop

    def show(self, *, stage: str) -> None:
        """Show the stage that runs now."""
        self._services.notes.progress(self._attempt.job, stage=stage)

    async def entries(self, kind: str) -> list[StoredEntry]:
        """What attempts have kept with this job. Waits as long as the engine is away."""
        return await self.on_worker_loop(self._entries(kind))

    async def _entries(self, kind: str) -> list[StoredEntry]:
        failures = 0
        while True:
            try:
                return await self._services.engine.entries(self.job_id, kind)
            except EngineUnavailable:
                failures += 1
                await asyncio.sleep(backoff(failures))

    async def write(
        self, *, stage: str | None = None, progress: float | None = None, entry: Entry | None = None
    ) -> None:
        """Write durably under this attempt's token. Raises `LeaseLost` when it is refused."""
        services, attempt = self._services, self._attempt
        taken = await self.on_worker_loop(
            services.notes.write(attempt.job, stage=stage, progress=progress, entry=entry)
        )
        if not taken:
            attempt.reason = Reason.LOST
            raise LeaseLost(
                f"job {self.job_id} belongs to another worker now (this attempt's token was "
                f"{self.token}); nothing was written"
            )

    async def on_worker_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Await on the worker's loop, also from a handler's own loop in a thread."""
        loop = self._services.loop
        if asyncio.get_running_loop() is loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
