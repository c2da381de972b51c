"""What a handler is given: `headrace.Context`, made real."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

import msgspec

from headrace.artifacts import ArtifactStore
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable, InvalidInput, LeaseLost, Suspended
from headrace.model.durable.awaited import Awaited
from headrace.model.durable.writes import Entry, StoredEntry
from headrace.orchestrator.durable.artifacts import JobArtifacts
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.durable.replay import ReplayedEntries
from headrace.orchestrator.durable.step_names import StepNames
from headrace.orchestrator.durable.step_store import WorkerStepStore
from headrace.orchestrator.running.attempt import Attempt, Reason
from headrace.orchestrator.running.threads import Threads
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.task import Task

log = logging.getLogger("headrace.job")

T = TypeVar("T")


class Services:
    """What all contexts of one orchestrator share."""

    __slots__ = (
        "artifacts",
        "clock",
        "engine",
        "loop",
        "payload_limit",
        "tasks",
        "threads",
        "writer",
    )

    def __init__(
        self,
        *,
        engine: Engine,
        writer: AttemptWriter,
        artifacts: ArtifactStore,
        threads: Threads,
        loop: asyncio.AbstractEventLoop,
        payload_limit: int,
        clock: Clock,
        tasks: Mapping[str, Task[..., Any]],
    ) -> None:
        self.engine = engine
        self.writer = writer
        self.artifacts = artifacts
        self.threads = threads
        self.loop = loop
        self.payload_limit = payload_limit
        self.clock = clock
        self.tasks = tasks


class JobContext(DurableContext):
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
                made = JobArtifacts(self)
            case "step_store":
                made = WorkerStepStore(self)
            case "step_names":
                made = StepNames()
            case "tasks":
                made = self._services.tasks
            case "replayed":
                made = ReplayedEntries(self)
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
        self._services.writer.progress(self._attempt.job, progress=float(percent), message=message)

    # --- for stages, waits, children and artifacts

    @property
    def engine(self) -> Engine:
        """Where the jobs live."""
        return self._services.engine

    @property
    def meta(self) -> dict[str, Any]:
        """What travels with the job besides its arguments."""
        meta = self._attempt.job.meta
        decoded: dict[str, Any] = msgspec.json.decode(meta) if meta else {}
        return decoded

    async def now(self) -> float:
        """Seconds since the epoch, by the engine's clock: another worker may go on from here."""
        return await self.on_worker_loop(self.retry_while_unavailable(self._services.engine.now))

    def suspend(self, delay: float, awaits: tuple[Awaited, ...] = ()) -> NoReturn:
        """Leave the handler; the job is run again when one of these has come about, or later."""
        self.suspending(now=True)
        raise Suspended(delay, awaits)

    def suspending(self, *, now: bool) -> None:
        """The handler is left by `Suspended` now, or has to wait for its stages first."""
        self._attempt.noticed = True
        self._attempt.suspended = now

    def refuse_when_over(self) -> None:
        """Raise `LeaseLost` when the handler has ended: what it left behind begins nothing."""
        if self._attempt.over:
            raise LeaseLost(f"attempt {self.attempt} of job {self.job_id} has ended")

    @property
    def store(self) -> ArtifactStore:
        """Where the files of all jobs are."""
        return self._services.artifacts

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Call a function that may block, in a thread. Left alone when this is cancelled."""
        value: T = await self._services.threads.run_stage(self._attempt, call)
        return value

    @property
    def payload_limit(self) -> int:
        """How many bytes a value kept with the job may have."""
        return self._services.payload_limit

    @property
    def in_a_thread(self) -> bool:
        """Whether the caller runs on a loop of its own, in the thread of a handler."""
        return asyncio.get_running_loop() is not self._services.loop

    def show_stage(self, *, stage: str) -> None:
        """Show the stage that runs now."""
        self._services.writer.progress(self._attempt.job, stage=stage)

    async def entries(self, kind: str | None = None) -> list[StoredEntry]:
        """What attempts have kept with this job. Waits as long as the engine is away."""
        engine = self._services.engine
        return await self.on_worker_loop(
            self.retry_while_unavailable(lambda: engine.entries(self.job_id, kind))
        )

    async def retry_while_unavailable(self, call: Callable[[], Awaitable[T]]) -> T:
        """Ask the engine for what may be asked again; wait as long as it is away."""
        failures = 0
        while True:
            try:
                return await call()
            except EngineUnavailable:
                failures += 1
                await self._services.writer.wait_out(failures)

    async def write(
        self, *, stage: str | None = None, progress: float | None = None, entry: Entry | None = None
    ) -> None:
        """Write durably under this attempt's token. Raises `LeaseLost` when it is refused."""
        services, attempt = self._services, self._attempt
        taken = await self.on_worker_loop(
            services.writer.write(attempt.job, stage=stage, progress=progress, entry=entry)
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
