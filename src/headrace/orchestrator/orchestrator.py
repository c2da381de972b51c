"""One worker: a dispatcher, an internal queue, and worker slots.

engine -> dispatcher -> internal_queue -> slots -> handler -> settle buffer -> engine
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from headrace.errors import HeadraceError, InvalidSetting, WorkerUnhealthy
from headrace.model.names import check_name
from headrace.model.worker import WorkerInfo
from headrace.orchestrator.claiming.prefetch import InternalQueue
from headrace.orchestrator.health import is_healthy, trouble_of
from headrace.orchestrator.isolation.child.loading_guard import refuse_while_loading
from headrace.orchestrator.middleware import Middleware, chain_of, split
from headrace.orchestrator.run_until_idle import run_until_idle
from headrace.orchestrator.running.slot import Slot
from headrace.orchestrator.shutdown import shut_down
from headrace.orchestrator.worker_parts import WorkerRuntime
from headrace.task.app_like import AppLike
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.worker")


class JobOrchestrator:
    """Runs the jobs of an App. `queues` None or empty: those of the settings, or all.

    Slots take jobs only from `internal_queue`; only the dispatcher claims. `stop` releases jobs
    that are claimed and not started, and lets running ones finish within the grace time.
    """

    def __init__(
        self,
        app: AppLike,
        *,
        queues: Sequence[str] | None = None,
        max_workers: int | None = None,
        name: str | None = None,
        middleware: Sequence[Middleware] = (),
        telemetry: Telemetry | None = None,
    ) -> None:
        settings = app.settings
        self.app = app
        self.queues = tuple(
            dict.fromkeys(check_name("queue", queue) for queue in queues or settings.queues)
        )
        self.max_workers = settings.max_workers if max_workers is None else max_workers
        if self.max_workers < 1:
            raise InvalidSetting(f"max_workers must be at least 1, got {self.max_workers}")
        self.name = name or settings.worker_name
        self.internal_queue = InternalQueue()
        self.running = False
        self.telemetry = telemetry or Telemetry()
        self.failure: BaseException | None = None
        # Called on the lease thread when the event loop hangs for good.
        self.on_hang: Callable[[], None] = lambda: None
        layers, self._stage_hooks = split(middleware)
        self._chain = chain_of(layers)
        self._runtime: WorkerRuntime | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None
        # How often `stop` was called: a start that began before is void.
        self._stops = 0
        self._ended = asyncio.Event()

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"<JobOrchestrator {state} max_workers={self.max_workers}>"

    # --- state

    @property
    def dispatcher_task(self) -> asyncio.Task[None] | None:
        """Return the task that exchanges outcomes for jobs; cancelled after `stop`."""
        return None if self._runtime is None else self._runtime.dispatcher.task

    @property
    def workers(self) -> list[Slot]:
        """Return the slots; empty after `stop`."""
        return [] if self._runtime is None else self._runtime.slots.slots

    @property
    def worker_id(self) -> str | None:
        """Return the id that this worker is registered under now."""
        return None if self._runtime is None else self._runtime.dispatcher.worker_id

    @property
    def worker_name(self) -> str | None:
        """Return the name that people know this worker by."""
        return None if self._runtime is None else self._runtime.name

    @property
    def healthy(self) -> bool:
        """Return whether it runs, reaches its engine and renews its lease."""
        return self.running and self._runtime is not None and is_healthy(self._runtime)

    @property
    def trouble(self) -> str | None:
        """Return why it takes no jobs now, in words; None if it does."""
        if self.failure is not None:
            return "it gave up; the log says why"
        if self._stopping is not None:
            return "it stops"
        if not self.running or self._runtime is None:
            return "it starts: it has not registered with the engine yet"
        return trouble_of(self._runtime)

    @property
    def engine_up(self) -> bool:
        """Return whether it reached its engine lately."""
        return self._runtime is not None and self._runtime.dispatcher.healthy

    @property
    def info(self) -> WorkerInfo | None:
        """Return how it has introduced itself to the engine."""
        return None if self._runtime is None else self._runtime.info

    @property
    def stuck_threads(self) -> int:
        """Return how many threads of handlers do not stop; they keep a process from ending."""
        return 0 if self._runtime is None else len(self._runtime.threads.abandoned)

    # --- start and stop

    async def start(self) -> None:
        """Connect, register the worker and begin to run jobs. Starting twice is fine, and so is
        starting a worker that gave up.

        Raises `EngineUnavailable` if the engine is unavailable now; once started, the worker waits
        for it. Raises `WorkerUnhealthy` if `stop` is called meanwhile.
        """
        refuse_while_loading()
        self._move_to(asyncio.get_running_loop())
        stops = self._stops
        async with self._starting:
            if self._stopping is not None:
                await asyncio.shield(self._stopping)
            self._check_wanted(stops)
            if self.running:
                if self.failure is None or self._runtime is None:
                    return
                # It gave up: stop what is left of it first.
                await self._stop(self._runtime, 0.0)
                self._check_wanted(stops)
            await self.app.open()
            self._check_wanted(stops)
            runtime = WorkerRuntime(
                host=self.app,
                queue=self.internal_queue,
                queues=self.queues,
                slots=self.max_workers,
                name=self.name,
                chain=self._chain,
                stage_hooks=self._stage_hooks,
                telemetry=self.telemetry,
                on_hang=self._hung,
                on_death=self._died,
            )
            await runtime.start()
            if stops != self._stops:
                runtime.dispatcher.drain()  # before its first round: nothing is claimed
                await shut_down(runtime, 0.0)
                self._check_wanted(stops)
            self._runtime = runtime
            self._stopping = None
            self.failure = None
            self._ended.clear()
            self.running = True

    async def stop(self, *, grace: float | None = None) -> None:
        """Release unstarted jobs, let running ones finish within the grace time, and deregister.

        `grace` is in seconds; None takes `grace_seconds`. Cancelling this call does not shorten
        it; calling it again with a shorter grace does.
        """
        self._stops += 1
        runtime = self._runtime
        if runtime is not None:
            await self._stop(runtime, grace)
        # A start in progress sees it, and undoes what it has done.
        async with self._starting:
            pass

    async def _stop(self, runtime: WorkerRuntime, grace: float | None) -> None:
        if self._stopping is None:
            self.running = False
            seconds = self.app.settings.grace_seconds if grace is None else grace
            self._stopping = asyncio.create_task(shut_down(runtime, seconds), name="headrace stop")
            self._stopping.add_done_callback(lambda _: self._ended.set())
        elif grace is not None:
            runtime.shorten_grace(grace)
        await asyncio.shield(self._stopping)

    async def wait(self) -> None:
        """Wait until the worker has been stopped. Raises `WorkerUnhealthy` if it gave up."""
        await self._ended.wait()
        if self.failure is not None:
            raise self.failure

    async def run_until_idle(self) -> None:
        """Run everything that may run now, and what that makes ready, then return.

        For tests and batches. Jobs that are due later, or wait behind one that is, are not run.
        Starts the worker for this call if it is not running.
        """
        started_here = not self.running
        runtime = await self._started()
        try:
            await run_until_idle(runtime)
        finally:
            if started_here:
                await self.stop()

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this event loop: queues and locks belong to one, and a program may run several."""
        before, self._loop = self._loop, loop
        if before is None or before is loop:
            return
        if self.running and not before.is_closed():
            self._loop = before
            raise HeadraceError("this orchestrator is running on another event loop")
        self.running = False
        self.internal_queue = InternalQueue()
        self._starting, self._ended = asyncio.Lock(), asyncio.Event()
        self._runtime = self._stopping = None

    def _check_wanted(self, stops: int) -> None:
        """Raise `WorkerUnhealthy` if `stop` has been called since there were so many calls."""
        if stops != self._stops:
            self._ended.set()
            raise WorkerUnhealthy("the worker was stopped while it started")

    async def _started(self) -> WorkerRuntime:
        await self.start()
        if self._runtime is None:
            raise WorkerUnhealthy("the worker was stopped while it started")
        return self._runtime

    async def __aenter__(self) -> JobOrchestrator:
        await self.start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.stop()

    # --- called by its parts

    def _hung(self) -> None:
        self.on_hang()

    def _died(self, error: BaseException) -> None:
        """The dispatcher or the lease thread gave up. A worker never stops silently."""
        self.failure = (
            error
            if isinstance(error, WorkerUnhealthy)
            else WorkerUnhealthy(f"the dispatcher ended: {type(error).__name__}: {error}")
        )
        log.critical("The worker gave up: %s", self.failure)
        self._ended.set()
