"""The parts of a started worker, and how they hear of each other."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.errors import HeadraceError, WorkerUnhealthy
from headrace.model.outcome import Released, Reserved, Settlement
from headrace.model.worker import Renewal, WorkerInfo
from headrace.orchestrator.claiming.dispatcher import Dispatcher
from headrace.orchestrator.claiming.unknown_tasks import UnknownTasks
from headrace.orchestrator.claiming.unstarted_jobs import InternalQueue
from headrace.orchestrator.host import Host
from headrace.orchestrator.lease_thread import LeaseThread
from headrace.orchestrator.middleware import Chain
from headrace.orchestrator.running.attempt import Attempt, Reason, monotonic
from headrace.orchestrator.running.context import Services
from headrace.orchestrator.running.executor import Executor
from headrace.orchestrator.running.loop_monitor import LoopBlockMonitor
from headrace.orchestrator.running.slots import Slots
from headrace.orchestrator.running.threads import Threads
from headrace.orchestrator.settling.attempt_recorder import AttemptRecorder
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.orchestrator.settling.family_updates import FamilyUpdates
from headrace.orchestrator.worker_info import make_worker_info, with_unique_suffix
from headrace.telemetry import Telemetry

if TYPE_CHECKING:
    from headrace.orchestrator.isolation import ProcessPool

log = logging.getLogger("headrace.worker")

LEAVE_SECONDS = 5.0


class WorkerRuntime:
    """One start of an orchestrator: made on its event loop, used once."""

    def __init__(
        self,
        *,
        host: Host,
        queue: InternalQueue,
        queues: tuple[str, ...],
        slots: int,
        name: str | None,
        chain: Chain | None,
        telemetry: Telemetry,
        on_hang: Callable[[], None],
        on_death: Callable[[BaseException], None],
    ) -> None:
        settings = host.settings
        self.host = host
        self.engine = host.engine
        self.settings = settings
        self.clock = host.clock
        self.queues = queues
        self.telemetry = telemetry
        self.threads = Threads()
        self.info = self._make_info(name, slots)
        self.upkeep = list(host.upkeep(telemetry=telemetry, worker=lambda: self.name))
        self.grace_until = float("inf")
        self.grace_shortened = asyncio.Event()
        self._on_death = on_death
        self._processes: ProcessPool | None = None
        self._unlisten: Callable[[], None] | None = None
        self._announcing: asyncio.Future[None] | None = None
        loop = asyncio.get_running_loop()
        self.writer = AttemptWriter(
            engine=self.engine, telemetry=telemetry, on_refused=self.lose_lease_of
        )
        self.family_updates = FamilyUpdates(engine=self.engine)
        self.executor = Executor(
            tasks=host.tasks,
            services=Services(
                engine=self.engine,
                writer=self.writer,
                artifacts=host.artifacts,
                threads=self.threads,
                loop=loop,
                payload_limit=settings.payload_limit,
                clock=host.clock,
                tasks=host.tasks,
            ),
            threads=self.threads,
            processes=self.processes,
            clock=host.clock,
            chain=chain,
            built_in=host.built_in,
        )
        self.dispatcher = Dispatcher(
            engine=self.engine,
            queue=queue,
            queues=queues,
            slots=slots,
            unknown_tasks=UnknownTasks(tasks=host.tasks, built_in=host.built_in),
            writer=self.writer,
            family_updates=self.family_updates,
            telemetry=telemetry,
            lease_seconds=settings.lease_seconds,
            connection_retries=settings.connection_retries,
            register=self.register_again,
            on_refused=self._refused,
        )
        self.recorder = AttemptRecorder(
            dispatcher=self.dispatcher,
            writer=self.writer,
            clock=host.clock,
            telemetry=telemetry,
            worker_name=self.info.name,
        )
        self.slots = Slots(
            size=slots,
            unstarted=self.dispatcher.unstarted,
            threads=self.threads,
            dispatcher=self.dispatcher,
            executor=self.executor,
            recorder=self.recorder,
            clock=host.clock,
            grace_seconds=settings.grace_seconds,
        )
        self.dispatcher.on_jobs = self.slots.fill
        self.dispatcher.settle_silent = self.recorder.settle_silent
        self.lease_thread = LeaseThread(
            engine=self.engine,
            loop=loop,
            lease_seconds=settings.lease_seconds,
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
            healthy=lambda: self.healthy,
            on_renewal=self._renewed,
            on_hang=on_hang,
            on_death=self._lease_thread_ended,
        )

    @property
    def name(self) -> str:
        """Under which name people know this worker."""
        return self.info.name

    @property
    def healthy(self) -> bool:
        """Whether the engine is reached and the lease kept."""
        lapsed = monotonic() - self.lease_thread.renewed_at > self.settings.lease_seconds
        return (
            self.dispatcher.healthy
            and self.lease_thread.alive
            and not (lapsed or self.lease_thread.hung)
        )

    async def start(self) -> None:
        """Introduce the worker, and set everything going."""
        began = monotonic()
        await self.engine.register(self.info, self.settings.lease_seconds)
        try:
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
        """Close what was opened. What the engine has to know may fail: the lease will lapse."""
        if self._announcing is not None:
            self._announcing.cancel()
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        self.threads.close()
        if self._processes is not None:
            await self._processes.close()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                # Those who take over need not wait, whatever becomes of the rest.
                with contextlib.suppress(HeadraceError):
                    await self._release_unstarted(self.info.id)
                await self.engine.retire(self.info.id)
        except (HeadraceError, TimeoutError) as error:
            log.warning("Worker %s could not take leave: %s", self.name, error)

    async def _release_unstarted(self, worker_id: str) -> None:
        """Return jobs that were leased to us and that nobody has begun: they never reached us, or
        were handed over when the dispatcher had stopped.
        """
        dispatcher = self.dispatcher
        # With no limit: from now on nothing is handed over.
        await self.engine.exchange([], worker_id=worker_id, limit=0)
        unstarted = [
            each
            for each in dispatcher.buffer.pending
            if isinstance(each.outcome, Released | Reserved)
        ]
        leased = await self.engine.held(worker_id)
        if worker_id == dispatcher.worker_id:  # otherwise the lease is lost: nothing is known
            begun_here, held = dispatcher.reconciler.begun_here, dispatcher.held
            unstarted += [
                Settlement(job.id, job.token, Released())
                for job in leased
                if not begun_here(job, held)
            ]
        if unstarted:
            await self.engine.exchange(unstarted)

    def processes(self) -> ProcessPool:
        """The child processes; made when the first job asks for one."""
        if self._processes is None:
            from headrace.orchestrator.isolation import ProcessPool  # noqa: PLC0415 - seldom used

            self._processes = ProcessPool(
                app_path=self.settings.app,
                size=self.dispatcher.slots,
                payload_limit=self.settings.payload_limit,
            )
        return self._processes

    # --- stopping attempts

    def interrupt(self, attempt: Attempt, reason: Reason, *, patience: float | None = None) -> None:
        """Tell a running attempt to stop."""
        deadlines = self.slots.deadlines
        seconds = self.settings.grace_seconds if patience is None else patience
        attempt.interrupt(reason, now=deadlines.now(), patience=seconds)
        if attempt.patience_until < deadlines.next:
            deadlines.arm(attempt.patience_until)

    def cancel(self, job_id: str) -> None:
        """Somebody wants this job cancelled, if it is ours."""
        token = self.dispatcher.held.get(job_id)
        if token is None:
            return  # what may still run of it has lost its lease
        attempt = self.slots.find(job_id, token)
        if attempt is not None:
            self.interrupt(attempt, Reason.CANCELLED)
        else:
            self.executor.cancelled_before_start[job_id] = token

    def lose_lease_of(self, job_id: str, token: int) -> None:
        """An attempt's write was refused: another worker owns the job."""
        attempt = self.slots.find(job_id, token)
        if attempt is not None:
            self.interrupt(attempt, Reason.LOST)

    def shorten_grace(self, grace: float) -> None:
        """Shorten the grace time of a stop that is under way."""
        self.grace_until = min(self.grace_until, monotonic() + grace)
        self.grace_shortened.set()

    # --- the lease

    async def register_again(self) -> str:
        """Introduce the worker under a new id, after its lease was lost."""
        name = self.info.name
        lapsed = monotonic() - self.lease_thread.renewed_at >= self.settings.lease_seconds
        if not lapsed and any(
            each.alive and each.name == name and each.id != self.info.id
            for each in await self.engine.workers()
        ):
            # Another process has taken the name. Two workers that take it from each other in turns
            # would cancel all their jobs each time. If there is none, the store was restored to
            # an earlier time, or its clock went ahead: the name is still ours.
            name = with_unique_suffix(name)
            log.error(
                "Another worker has registered as %r; this one goes on as %r. Give each worker a "
                "name of its own (HEADRACE_WORKER_NAME).",
                self.info.name,
                name,
            )
        info = self._make_info(name, self.dispatcher.slots)
        began = monotonic()
        await self.engine.register(info, self.settings.lease_seconds)
        self.info = info
        self.recorder.worker_name = info.name
        self.lease_thread.renew_for(info.id, began)
        log.warning("Worker %s has registered again", info.name)
        return info.id

    def _make_info(self, name: str | None, slots: int) -> WorkerInfo:
        return make_worker_info(
            name=name, queues=self.queues, slots=slots, tasks=self.host.task_names()
        )

    async def _announce_tasks(self, names: tuple[str, ...]) -> None:
        """Tasks were registered since the worker has started: jobs of them may wait for it."""
        info = msgspec.structs.replace(self.info, tasks=names)
        with contextlib.suppress(HeadraceError):  # asked again at the next renewal
            await self.engine.know(info)
            if self.info.id == info.id:  # otherwise it has registered again, and said so
                self.info = info
                self.dispatcher.on_work_signal()

    def _renewed(self, worker_id: str, renewal: Renewal) -> None:
        # Whatever it says, the engine is there: nobody has to wait out its absence any longer.
        for loop in (self.dispatcher, self.writer, self.family_updates, *self.upkeep):
            loop.retry_now()
        if renewal.alive:
            for job_id in renewal.cancelled:
                self.cancel(job_id)
            self.executor.forget_cancelled(self.dispatcher.held)
            names = self.host.task_names()
            if names != self.info.tasks and (self._announcing is None or self._announcing.done()):
                self._announcing = asyncio.ensure_future(self._announce_tasks(names))
            return
        if worker_id != self.dispatcher.worker_id:
            return
        self.telemetry.leases_lost += 1
        # First: a slot that is freed by stopping its attempt takes the next job at once.
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
            self.interrupt(attempt, Reason.LOST)

    def _lease_thread_ended(self, error: WorkerUnhealthy) -> None:
        self.dispatcher.drain()  # what is claimed from now on would be lost
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
            # Nobody is left to settle anything: others take over, also if nobody calls `stop`.
            self.lease_thread.let_lapse()
            self.dispatcher.drain()
            self._lose_all("settles nothing any more")
            self._on_death(error)
