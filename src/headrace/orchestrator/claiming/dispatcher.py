"""The worker's dispatcher: the one loop that exchanges outcomes for jobs with the engine.

One exchange settles what has finished and claims as many jobs as there is room for. It is made
when there is room enough, when the first outcome has waited long enough, or when nothing else is
claimed. While it is in flight the slots go on with what was claimed before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from headrace.engine.base import Engine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Settlement
from headrace.model.sealed import DOCUMENT as SEALED
from headrace.model.views import Exchange
from headrace.orchestrator.claiming.breakers import WorkerBreakers
from headrace.orchestrator.claiming.chunks import ChunkCollector
from headrace.orchestrator.claiming.prefetch import (
    BUSY_LINGER,
    LINGER,
    PATIENCE,
    InternalQueue,
    JobRunner,
    PollBackoff,
    PrefetchLimit,
    UnstartedJobs,
)
from headrace.orchestrator.claiming.reconcile import Reconciler
from headrace.orchestrator.claiming.unknown_tasks import UnknownTasks
from headrace.orchestrator.claiming.unstarted_claims import UnstartedClaims
from headrace.orchestrator.running.attempt import monotonic
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.orchestrator.settling.family_updates import FamilyUpdates
from headrace.orchestrator.settling.settlements import UNAVAILABLE, ExtraSettler, SettleBuffer
from headrace.telemetry import Telemetry

# This many outcomes are worth an exchange before the window ends.
EXCHANGE_BATCH = 400


class Dispatcher(UnstartedClaims):
    """Fills the internal queue from the engine, and empties the settle buffer into it."""

    name = "dispatcher"

    def __init__(
        self,
        *,
        engine: Engine,
        queue: InternalQueue,
        queues: Sequence[str],
        slots: int,
        chunks: ChunkCollector,
        breakers: WorkerBreakers,
        unknown_tasks: UnknownTasks,
        writer: AttemptWriter,
        family_updates: FamilyUpdates,
        telemetry: Telemetry,
        lease_seconds: float,
        connection_retries: int | None,
        register: Callable[[], Awaitable[str]],
        on_refused: Callable[[Sequence[str]], None],
        make_runner: Callable[[Dispatcher], JobRunner],
    ) -> None:
        super().__init__()
        self.engine = engine
        self.unstarted = UnstartedJobs(queue)
        self.queues = tuple(queues) or None
        self.slots = slots
        self.chunks = chunks
        self.breakers = breakers
        self.unknown_tasks = unknown_tasks
        self.writer = writer
        self.family_updates = family_updates
        self.telemetry = telemetry
        self.connection_retries = connection_retries
        self.worker_id: str | None = None
        self.prefetch = PrefetchLimit(slots)
        self.buffer = SettleBuffer()
        self.extra_settler = ExtraSettler(engine=engine, buffer=self.buffer, on_reply=self._settled)
        # Every job that the engine has leased to this worker, with its token.
        self.held: dict[str, int] = {}
        # Claimed and not finished: waiting for a slot, or running.
        self.claimed_count = 0
        self.draining = False
        # Incremented on every wake-up. If it changes while a claim is in flight, that claim's
        # "empty" is stale.
        self.wakeups_seen = 0
        self.poll = PollBackoff()
        self.reconciler = Reconciler(engine=engine, lease_seconds=lease_seconds)
        self._register = register
        self._on_refused = on_refused
        self._in_flight = False
        # A claim that began after the last signal has found less than there was room for.
        self.queues_empty = False
        self._low_water = slots - 1
        self._linger = LINGER
        self._linger_until = 0.0
        # Last: it is given this dispatcher, which it takes jobs from and reports outcomes to.
        self.runner = make_runner(self)
        chunks.on_ready = self.runner.fill
        breakers.claimed = self

    # --- called by slots and signals

    def finished(self, job: ClaimedJob, settlement: Settlement | None, now: float) -> None:
        """Take the outcome of an attempt. None: its lease is lost, there is nothing to settle."""
        self.claimed_count -= 1
        if self.breakers.by_task:
            self.breakers.ended(job, None if settlement is None else settlement.outcome)
        if settlement is None:
            if self.held.get(job.id) == job.token:
                del self.held[job.id]
                self.reconciler.ended_silently(job)
            self.wake()
            return
        buffer = self.buffer
        buffer.add(settlement)
        waiting = len(buffer.pending)
        if waiting == 1:
            self._linger_until = now + self._linger
            self.wake()
        elif waiting >= EXCHANGE_BATCH and self._in_flight and not self.writer.flush_before_settle:
            self.extra_settler.send()
        elif self.claimed_count <= self._low_water or waiting == EXCHANGE_BATCH:
            self.wake()
        if type(settlement.outcome) is not Completed:
            self.wakeups_seen += 1  # it may be ready again at once
            self.queues_empty = False
            self.family_updates.after_settling(job, settlement.outcome)
            return
        if settlement.follow:
            self.wakeups_seen += 1  # these may be ready, too
            self.queues_empty = False
        if job.parent is not None:
            self.family_updates.after_settling(job, settlement.outcome)

    def on_work_signal(self) -> None:
        self.wakeups_seen += 1
        self.queues_empty = False
        self.wake()

    def on_jobs_pushed(self, worker_id: str, jobs: Sequence[ClaimedJob]) -> None:
        """The engine has leased jobs to a worker without a claim. An empty id: pushes were lost."""
        if not worker_id:
            self.reconciler.reply_lost()
            self.wake()
        elif worker_id == self.worker_id:
            now = monotonic()
            self.poll.found(now)
            known = self.reconciler.known_already
            self.receive([job for job in jobs if not known(job, self.held)], now=now)

    def drain(self) -> None:
        """Claim no more, and release what has not started."""
        self.draining = True
        self._release_all()
        self.wake()

    def on_lease_lost(self) -> None:
        """Release unstarted jobs, as far as no other worker has taken them over, and forget all."""
        self.worker_id = None
        self._release_all()
        self.held.clear()
        self.reconciler.reset()
        self.wake()

    @property
    def idle(self) -> bool:
        return not (self.claimed_count or self.buffer.pending or self.held)

    @property
    def in_flight(self) -> bool:
        """Return whether an exchange waits for its reply, which may bring more jobs."""
        return self._in_flight or self.extra_settler.in_flight

    @property
    def unsettled(self) -> int:
        return len(self.buffer.pending) + self.claimed_count

    async def tick(self) -> float:
        if self.worker_id is None and not self.draining:
            self.worker_id = await self._register()
        now = monotonic()
        if self.worker_id is not None and now >= self.reconciler.due_at:
            await self._reconcile(self.worker_id)
            now = monotonic()
        overdue = self.unstarted.ages.overdue(now)
        if overdue or (self.chunks.ready and self.chunks.next_overdue() <= now):
            self.prefetch.reset()
            self.release_unstarted(overdue)
            self._release(self.chunks.take_overdue(now))
        room = self._room()
        if not self._should_exchange(room, now):
            return self._pause(room, now)
        await self._exchange(room, now)
        now = monotonic()
        room = self._room()
        return 0.0 if self._should_exchange(room, now) else self._pause(room, now)

    async def stop(self, patience: float = 5.0) -> None:
        await super().stop(patience)
        await self.extra_settler.stop()

    def _room(self) -> int:
        if self.draining or self.worker_id is None or self.buffer.isolating:
            return 0
        ahead = self.prefetch.count()
        capacity = self.slots + ahead
        # With long jobs each free slot is worth an exchange; with short ones half a load is.
        self._low_water = 0 if self.queues_empty else capacity // 2 if ahead else capacity - 1
        short = self.prefetch.mean < LINGER and not self.queues_empty
        self._linger = BUSY_LINGER if short else LINGER
        room = capacity - self.claimed_count
        if self.chunks.names:
            room, filling = self.chunks.room(room, self.prefetch)
            low_water = self._low_water + self.chunks.surplus
            self._low_water = self.claimed_count if filling else low_water
        return max(room, 0)

    def _should_exchange(self, room: int, now: float) -> bool:
        waiting = len(self.buffer.pending)
        if waiting and (self.draining or now >= self._linger_until or waiting >= EXCHANGE_BATCH):
            return True
        if waiting and self.claimed_count == 0:
            return True
        if room <= 0:
            return False
        return now >= self.poll.next or (
            not self.queues_empty
            and self.claimed_count <= self._low_water
            and now >= self.poll.ignore_signals_until
        )

    def _pause(self, room: int, now: float) -> float:
        until = self.reconciler.due_at
        if self.buffer.pending:
            until = min(until, self._linger_until)
        if room > 0:
            until = min(until, self.poll.next)
            if not self.queues_empty and self.claimed_count <= self._low_water:
                until = min(until, self.poll.ignore_signals_until)
        oldest = self.unstarted.ages.oldest()
        if oldest is not None:
            until = min(until, oldest + PATIENCE)
        if self.chunks.ready:
            until = min(until, self.chunks.next_overdue())
        return max(until - now, 0.0)

    async def _exchange(self, room: int, began: float) -> None:
        settlements = self.buffer.take()
        wakeups, worker_id = self.wakeups_seen, self.worker_id
        self._in_flight = True
        try:
            if self.writer.flush_before_settle:
                # The last progress of these attempts is written before their outcomes.
                await self.writer.flush()
            claims = worker_id if room else None
            # Jobs with a rate are claimed for these only: they start when they are claimed.
            free = max(self.slots - self.claimed_count, 0)
            if self.chunks.names:
                free = self.chunks.free(self.slots - self.claimed_count)
            reply = await self.engine.exchange(
                settlements, worker_id=claims, queues=self.queues, limit=room, free=free
            )
        except BaseException as error:
            # It may have arrived: send the outcomes again, and look for claims without a reply.
            self.buffer.put_back(settlements, may_be_poisoned=not isinstance(error, UNAVAILABLE))
            self.reconciler.reply_lost()
            raise
        finally:
            self._in_flight = False
        self.buffer.sent(settlements)
        now = monotonic()
        self._linger_until = now + self._linger
        self.telemetry.exchange_seconds.observe(now - began)
        self._settled(settlements, reply)
        self.extra_settler.enabled = True
        if room:
            self.queues_empty = len(reply.jobs) < room and wakeups == self.wakeups_seen
            if reply.jobs:
                self.poll.found(now)
            else:
                self.telemetry.listening = self.engine.listening
                self.poll.empty(now, listening=self.telemetry.listening, asked=not settlements)
            if free:
                self.poll.sooner(now, reply.next_in)
        self.receive(reply.jobs, now=now, ours=worker_id == self.worker_id)
        if self.queues_empty and self.chunks.eager:
            self.chunks.queues_empty()

    def _settled(self, settlements: Sequence[Settlement], reply: Exchange) -> None:
        self.telemetry.exchanges += 1
        held = self.held
        for settlement in settlements:
            if held.get(settlement.job_id) == settlement.token:
                del held[settlement.job_id]
        if self.family_updates.affected:
            self.family_updates.settled(settlements)
        if reply.refused:
            self._on_refused(reply.refused)

    def receive(self, jobs: Sequence[ClaimedJob], *, now: float, ours: bool = True) -> None:
        """Queue claimed jobs. Release those that are not `ours` (leased to an earlier id)."""
        if not jobs:
            return
        self.telemetry.claimed += len(jobs)
        self.claimed_count += len(jobs)
        self.prefetch.observe_size(sum([len(job.args) for job in jobs]) / len(jobs))
        held, tasks = self.held, self.unknown_tasks.tasks
        for job in jobs:
            held[job.id] = job.token
        if self.reconciler.comparing:
            self.reconciler.received(jobs)
        if [job for job in jobs if job.task not in tasks or job.args.startswith(SEALED)]:
            left = {job.id: (job, outcome) for job, outcome in self.unknown_tasks.among(jobs)}
            jobs = [job for job in jobs if job.id not in left]
            for job, outcome in left.values():
                self._release([job], outcome, now)
        if self.breakers.by_task:
            jobs = self.breakers.admit(jobs, now)
        if self.chunks.names:
            jobs = self.chunks.collect(jobs)
        self.unstarted.put(jobs, now)
        if self.draining or not ours:
            self._release_all()
        else:
            self.runner.fill()

    async def _reconcile(self, worker_id: str) -> None:
        found = await self.reconciler.compare(worker_id, self.held)
        if jobs := found.unstarted:
            self.telemetry.adopted += len(jobs)
            self.receive(jobs, now=monotonic())
        for job in found.silent:
            self.held[job.id] = job.token
            self.claimed_count += 1
            self.finished(job, self.runner.settle_silent(job), monotonic())
