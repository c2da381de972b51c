"""The parts of a started worker, wired together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError, WorkerUnhealthy
from headrace.model.lease import renewal_seconds
from headrace.model.worker import Renewal, WorkerInfo
from headrace.orchestrator.claiming.breakers import WorkerBreakers
from headrace.orchestrator.claiming.chunks import ChunkCollector
from headrace.orchestrator.claiming.dispatcher import Dispatcher
from headrace.orchestrator.claiming.known_tasks import KnownTasks
from headrace.orchestrator.claiming.prefetch import InternalQueue
from headrace.orchestrator.health import is_healthy
from headrace.orchestrator.lease_thread import LeaseThread
from headrace.orchestrator.middleware import Chain
from headrace.orchestrator.running.attempt import Reason, monotonic
from headrace.orchestrator.running.context import Services
from headrace.orchestrator.running.executor import executor_kind
from headrace.orchestrator.running.loop_monitor import LoopBlockMonitor
from headrace.orchestrator.running.slots import Slots
from headrace.orchestrator.running.threads import Threads
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.orchestrator.settling.family_updates import FamilyUpdates
from headrace.orchestrator.settling.settlements import AttemptRecorder
from headrace.orchestrator.worker_info import make_worker_info, name_after_loss
from headrace.task.app_like import AppLike
from headrace.task.stage_hooks import StageHook, StageHooks
from headrace.telemetry import Telemetry

if TYPE_CHECKING:
    from headrace.orchestrator.isolation import ProcessPool

log = logging.getLogger("headrace.worker")

DEREGISTER_SECONDS = 5.0


class WorkerRuntime:
    """One start of an orchestrator: made on its event loop, used once."""

    def __init__(
        self,
        *,
        host: AppLike,
        queue: InternalQueue,
        queues: tuple[str, ...],
        slots: int,
        name: str | None,
        chain: Chain | None,
        stage_hooks: Sequence[StageHook],
        telemetry: Telemetry,
        on_hang: Callable[[], None],
        on_death: Callable[[BaseException], None],
    ) -> None:
        settings = host.settings
        self.host = host
        self.engine = host.engine
        self.settings = settings
        self.renewal_seconds = renewal_seconds(settings.lease_seconds)
        self.queues = queues
        self.telemetry = telemetry
        self.threads = Threads()
        loop = asyncio.get_running_loop()
        self.known_tasks = KnownTasks(host, info=lambda: self.info, on_told=self._tasks_told)
        self.info = self._make_info(name, slots)
        self._own_ids = {self.info.id}
        self.upkeep = list(host.upkeep(telemetry=telemetry, worker=lambda: self.name))
        self.grace_until = float("inf")
        self.grace_shortened = asyncio.Event()
        self._on_death = on_death
        self._processes: ProcessPool | None = None
        self._unlisten: Callable[[], None] | None = None
        self.writer = AttemptWriter(
            engine=self.engine, telemetry=telemetry, on_refused=self.lose_lease_of
        )
        self.family_updates = FamilyUpdates(engine=self.engine)
        self.breakers = WorkerBreakers(
            engine=self.engine,
            by_task=host.task_breakers,
            tasks=host.tasks,
            queues=queues,
            worker=lambda: self.name,
        )
        self.executor = executor_kind(host)(
            tasks=host.tasks,
            services=Services(
                engine=self.engine,
                writer=self.writer,
                artifacts=host.artifact_store,
                threads=self.threads,
                loop=loop,
                payload_limit=settings.payload_limit,
                clock=host.clock,
                tasks=host.tasks,
                stage_hooks=StageHooks(host.stage_hooks, stage_hooks),
                event_job=host.event_job,
                tracing=host.tracing,
                sealing=host.sealing,
            ),
            threads=self.threads,
            processes=self.processes,
            clock=host.clock,
            chain=chain,
            built_in=host.built_in,
            without_key=self.known_tasks.unknown.without_key,
        )
        self.dispatcher = Dispatcher(
            engine=self.engine,
            queue=queue,
            queues=queues,
            slots=slots,
            chunks=ChunkCollector(names=host.chunk_tasks, tasks=host.tasks, clock=host.clock),
            breakers=self.breakers,
            unknown_tasks=self.known_tasks.unknown,
            writer=self.writer,
            family_updates=self.family_updates,
            telemetry=telemetry,
            lease_seconds=settings.lease_seconds,
            connection_retries=settings.connection_retries,
            register=self.register_again,
            on_refused=self._refused,
            make_runner=self._make_slots,
        )
        self.lease_thread = LeaseThread(
            engine=self.engine,
            loop=loop,
            lease_seconds=self.renewal_seconds,
            monitor=LoopBlockMonitor(
                loop=loop,
                block_seconds=settings.block_seconds,
                grace_seconds=settings.grace_seconds,
                clock=host.clock,
                attempts=self.slots.attempts,
                telemetry=telemetry,
            ),
            telemetry=telemetry,
            running=lambda: self.slots.busy,
            healthy=lambda: is_healthy(self),
            on_renewal=self._renewed,
            on_hang=on_hang,
            on_death=self._lease_thread_ended,
        )

    def _make_slots(self, dispatcher: Dispatcher) -> Slots:
        self.recorder = AttemptRecorder(
            sink=dispatcher,
            writer=self.writer,
            clock=self.host.clock,
            telemetry=self.telemetry,
            worker_name=self.info.name,
        )
        self.slots = Slots(
            size=dispatcher.slots,
            source=dispatcher,
            threads=self.threads,
            executor=self.executor,
            recorder=self.recorder,
            clock=self.host.clock,
            grace_seconds=self.settings.grace_seconds,
        )
        return self.slots

    @property
    def name(self) -> str:
        return self.info.name

    async def start(self) -> None:
        """Register the worker and start its loops. Raises `InvalidSetting` for encryption keys that
        cannot be used.
        """
        if self.host.sealing is not None:
            # In a thread: they may come from a service elsewhere.
            await asyncio.to_thread(getattr, self.host.sealing, "keys")
        began = monotonic()
        await self.engine.register(self.info, self.renewal_seconds)
        try:
            await self.breakers.begin()
            self._unlisten = await self.engine.listen(
                self.dispatcher.on_work_signal, self.cancel, self.dispatcher.on_jobs_pushed
            )
            self.lease_thread.start()
        except BaseException:
            await self.deregister()
            raise
        self.telemetry.listening = self.engine.listening
        self.dispatcher.worker_id = self.info.id
        self.lease_thread.renew_for(self.info.id, began)
        self.slots.start()
        self.writer.start()
        self.family_updates.start()
        self.dispatcher.start().add_done_callback(self._dispatcher_ended)
        for loop in self.upkeep:
            loop.start()
        log.info(
            "Worker %s serves %s with %d slots",
            self.name,
            ", ".join(self.queues) or "all queues",
            self.dispatcher.slots,
        )

    async def deregister(self) -> None:
        """Close what was opened, and retire the worker. If the engine is away, the lease lapses."""
        self.known_tasks.stop()
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        self.threads.close()
        if self._processes is not None:
            await self._processes.close()
        try:
            async with asyncio.timeout(DEREGISTER_SECONDS):
                # Retire even if this fails, so that others take over at once.
                with contextlib.suppress(HeadraceError):
                    await self._release_unstarted(self.info.id)
                await self.engine.retire(self.info.id)
        except (HeadraceError, TimeoutError) as error:
            log.warning("Worker %s could not be deregistered: %s", self.name, error)

    async def _release_unstarted(self, worker_id: str) -> None:
        dispatcher = self.dispatcher
        # Under another id the lease was lost, and what has begun here is not known any more.
        held = dispatcher.held if worker_id == dispatcher.worker_id else None
        releases = dispatcher.buffer.releases()
        await dispatcher.reconciler.release_unstarted(worker_id, releases, held)

    def processes(self) -> ProcessPool:
        """Return the pool of child processes, which is made for the first job that needs one."""
        if self._processes is None:
            from headrace.orchestrator.isolation import ProcessPool  # noqa: PLC0415 - seldom used

            self._processes = ProcessPool(
                app_path=self.settings.app,
                size=self.dispatcher.slots,
                payload_limit=self.settings.payload_limit,
            )
        return self._processes

    # --- stopping attempts

    def cancel(self, job_id: str) -> None:
        """Stop this job, if it runs or waits here."""
        token = self.dispatcher.held.get(job_id)
        if token is None:
            return  # an attempt that may still run has lost its lease
        attempt = self.slots.find(job_id, token)
        if attempt is not None:
            self.slots.deadlines.interrupt(attempt, Reason.CANCELLED)
        elif not self.slots.chunk_calls.cancel_waiting(job_id, token):
            self.executor.cancelled_before_start[job_id] = token

    def lose_lease_of(self, job_id: str, token: int) -> None:
        """Stop an attempt whose write was refused: another worker has the job."""
        attempt = self.slots.find(job_id, token)
        if attempt is not None:
            self.slots.deadlines.interrupt(attempt, Reason.LOST)

    def shorten_grace(self, grace: float) -> None:
        self.grace_until = min(self.grace_until, monotonic() + grace)
        self.grace_shortened.set()

    # --- the lease

    async def register_again(self) -> str:
        """Register the worker under a new id, after its lease was lost."""
        name = self.info.name
        lapsed = monotonic() - self.lease_thread.renewed_at >= self.renewal_seconds
        if not lapsed:
            name = name_after_loss(name, self._own_ids, await self.engine.workers())
        info = self._make_info(name, self.dispatcher.slots)
        # Noted before: if the answer gets lost, this one is ours all the same.
        self._own_ids.add(info.id)
        began = monotonic()
        await self.engine.register(info, self.renewal_seconds)
        self.info = info
        self.recorder.worker_name = info.name
        self.lease_thread.renew_for(info.id, began)
        log.warning("Worker %s has registered again", info.name)
        return info.id

    def _make_info(self, name: str | None, slots: int) -> WorkerInfo:
        return make_worker_info(
            name=name, queues=self.queues, slots=slots, tasks=self.known_tasks.names()
        )

    def _tasks_told(self, info: WorkerInfo) -> None:
        self.info = info
        self.dispatcher.on_work_signal()

    def _renewed(self, worker_id: str, renewal: Renewal) -> None:
        # Whatever the renewal says, the engine is available again: end all backoff.
        for loop in (
            self.dispatcher,
            self.writer,
            self.family_updates,
            self.breakers,
            *self.upkeep,
        ):
            loop.retry_now()
        if renewal.alive:
            for job_id in renewal.cancelled:
                self.cancel(job_id)
            self.dispatcher.lose(renewal.lost, self.lose_lease_of)
            self.executor.forget_cancelled(self.dispatcher.held)
            self.known_tasks.tell()
            return
        if worker_id != self.dispatcher.worker_id:
            return
        self.telemetry.leases_lost += 1
        # First: a slot that is freed by stopping its attempt starts the next job at once.
        self.dispatcher.on_lease_lost()
        self._lose_all("has lost its lease")

    def _lose_all(self, why: str) -> None:
        attempts = self.slots.running()
        log.error(
            "Worker %s %s: %d running jobs are stopped, others run them",
            self.name,
            why,
            len(attempts),
        )
        for attempt in attempts:
            self.slots.deadlines.interrupt(attempt, Reason.LOST)

    def _lease_thread_ended(self, error: WorkerUnhealthy) -> None:
        self.dispatcher.drain()  # jobs that are claimed from now on would be lost
        self._on_death(error)

    def _refused(self, job_ids: Sequence[str]) -> None:
        self.telemetry.refused += len(job_ids)
        log.warning(
            "The engine refused the outcomes of %d attempts that are not ours any more: %s",
            len(job_ids),
            ", ".join(job_ids[:5]),
        )
        self.lease_thread.renew_now()

    def _dispatcher_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            # Nothing is settled any more: let others take over, even if `stop` is never called.
            self.lease_thread.let_lapse()
            self.dispatcher.drain()
            self._lose_all("settles nothing any more")
            self._on_death(error)
