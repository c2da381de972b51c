"""The worker's implementation of `headrace.Context`."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from headrace.artifacts import ArtifactStore
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import (
    EngineUnavailable,
    InvalidInput,
    LeaseLost,
    MissingEncryptionKey,
    Suspended,
)
from headrace.model.durable.awaited import Awaited
from headrace.model.durable.followers import follower
from headrace.model.durable.writes import Entry, StoredEntry
from headrace.model.job import NewJob
from headrace.orchestrator.durable.artifacts import JobArtifacts
from headrace.orchestrator.durable.context import DurableContext
from headrace.orchestrator.durable.entry_names import EntryNames
from headrace.orchestrator.durable.entry_store import WorkerEntryStore
from headrace.orchestrator.durable.followers import Followers
from headrace.orchestrator.durable.replay import ReplayedEntries
from headrace.orchestrator.running.attempt import Attempt, Reason
from headrace.orchestrator.running.threads import Threads
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.task import Task
from headrace.task.stage_hooks import StageHooks

if TYPE_CHECKING:
    from headrace.encryption import Sealing
    from headrace.tracing.tracer import Tracing

log = logging.getLogger("headrace.job")

T = TypeVar("T")


class Services(msgspec.Struct, kw_only=True, eq=False):
    """What all contexts of one worker share."""

    engine: Engine
    writer: AttemptWriter
    artifacts: ArtifactStore
    threads: Threads
    loop: asyncio.AbstractEventLoop
    payload_limit: int
    clock: Clock
    tasks: Mapping[str, Task[..., Any]]
    stage_hooks: StageHooks
    event_job: Callable[..., NewJob]
    tracing: Tracing | None = None
    sealing: Sealing | None = None


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
        # Without a key of the caller's the job's id is what stays the same over attempts.
        self.key = job.key or job.id
        self.lane = job.lane
        self._attempt = attempt
        self._services = services
        # Once the handler reports progress itself, stages do not.
        self.own_progress = False
        self.sealed = job.sealed

    # Made when they are first used: few handlers need them.

    @functools.cached_property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:  # type: ignore[override]
        extra = {
            "job_id": self.job_id,
            "task": self.task,
            "queue": self.queue,
            "attempt": self.attempt,
        }
        return logging.LoggerAdapter(log, extra)

    @functools.cached_property
    def artifacts(self) -> JobArtifacts:  # type: ignore[override]
        return JobArtifacts(self)

    @functools.cached_property
    def entry_store(self) -> WorkerEntryStore:  # type: ignore[override]
        return WorkerEntryStore(self)

    @functools.cached_property
    def entry_names(self) -> EntryNames:  # type: ignore[override]
        return EntryNames()

    @functools.cached_property
    def replayed(self) -> ReplayedEntries:
        return ReplayedEntries(self)

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:  # type: ignore[override]
        return self._services.tasks

    @property
    def cancelled(self) -> bool:
        attempt = self._attempt
        if attempt.reason is None:
            return False
        attempt.noticed = True
        return True

    def progress(self, percent: float, message: str | None = None) -> None:
        if not 0 <= percent <= 100:
            raise InvalidInput(f"progress must be between 0 and 100, got {percent!r}")
        self.own_progress = True
        # It is for people, who could not read it: of an encrypted task it is not stored.
        shown = None if self.sealed else message
        self._services.writer.progress(self._attempt.job, progress=float(percent), message=shown)

    # --- for stages, waits, children and artifacts

    @property
    def sealing(self) -> Sealing:
        """Return what seals and opens. Raises `MissingEncryptionKey` without any keys."""
        sealing = self._services.sealing
        if sealing is None:
            raise MissingEncryptionKey(
                f"job {self.job_id} needs encryption keys, and this worker has none; give it some: "
                "HEADRACE_ENCRYPTION_KEYS or HEADRACE_ENCRYPTION_KEY_FILE"
            )
        return sealing

    def seal_from_now(self) -> None:
        """Seal what this attempt stores from now on."""
        self.sealed = self._attempt.job.sealed = True

    @property
    def engine(self) -> Engine:
        return self._services.engine

    @property
    def meta(self) -> dict[str, Any]:
        meta = self._attempt.job.meta
        decoded: dict[str, Any] = msgspec.json.decode(meta) if meta else {}
        return decoded

    async def now(self) -> float:
        """Return the engine's time, in seconds: the next run may be on another worker."""
        return await self.on_worker_loop(self.retry_while_unavailable(self._services.engine.now))

    def suspend(self, delay: float, awaits: tuple[Awaited, ...] = ()) -> NoReturn:
        """Leave the handler; the job runs again when one of `awaits` has happened, or later."""
        self.suspending(now=True)
        raise Suspended(delay, awaits)

    def suspending(self, *, now: bool) -> None:
        """Note that `Suspended` leaves the handler: now, or after its stages have ended."""
        self._attempt.noticed = True
        self._attempt.suspended = now

    def refuse_when_over(self) -> None:
        """Raise `LeaseLost` if the handler has ended: what it left running may start nothing."""
        if self._attempt.over:
            raise LeaseLost(f"attempt {self.attempt} of job {self.job_id} has ended")

    @property
    def args_json(self) -> bytes:  # type: ignore[override]
        return self._attempt.job.args

    def follow(self, jobs: list[NewJob], on: str, name: str | None = None) -> None:
        """Have jobs stored with the outcome of this attempt. From any thread; makes no call.
        `name` is that of their span.
        """
        self.refuse_when_over()
        attempt, meta = self._attempt, self.meta
        if self.tracing is not None:
            with self.tracing.enqueuing_together(jobs, name) as traced:
                jobs = traced
        made = [follower(job, self.job_id, meta) for job in jobs]
        Followers.of(attempt).add(attempt, made, on, self.payload_limit)

    def event_job(self, event_type: str, body: bytes, key: str | None) -> NewJob:
        """Return the job of an event that this job publishes."""
        return self._services.event_job(event_type, body, key, self.job_id, sealed=self.sealed)

    @property
    def store(self) -> ArtifactStore:
        return self._services.artifacts

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Call a function in a thread, which is abandoned when this is cancelled."""
        value: T = await self._services.threads.run_stage(self._attempt, call)
        return value

    @property
    def payload_limit(self) -> int:
        """Return how many bytes a value stored with the job may have."""
        return self._services.payload_limit

    @property
    def in_a_thread(self) -> bool:
        """Return whether the caller runs on an event loop of its own, in a handler's thread."""
        return asyncio.get_running_loop() is not self._services.loop

    def show_stage(
        self, *, stage: str, progress: float | None = None, entry: Entry | None = None
    ) -> None:
        """Show the stage that runs now, or has finished, in views of the job. It is written with
        what comes next, and before the outcome.
        """
        self._services.writer.progress(
            self._attempt.job, stage=stage, progress=progress, entry=entry
        )

    @property
    def has_stage_hooks(self) -> bool:
        """Return whether somebody wants to be told about stages."""
        hooks = self._services.stage_hooks
        return bool(hooks.of_app or hooks.of_worker)

    async def tell_stage(self, stage: str, *, done: bool) -> None:
        """Call the hooks on stages. Raises what one of them raises."""
        await self.on_worker_loop(self._services.stage_hooks.call(self._attempt.job, stage, done))

    async def entries(self, kind: str | None = None) -> list[StoredEntry]:
        """Return what attempts have recorded. Waits while the engine is unavailable."""
        engine = self._services.engine
        return await self.on_worker_loop(
            self.retry_while_unavailable(lambda: engine.entries(self.job_id, kind))
        )

    async def retry_while_unavailable(self, call: Callable[[], Awaitable[T]]) -> T:
        """Await a call that may be repeated, again while the engine is unavailable."""
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
