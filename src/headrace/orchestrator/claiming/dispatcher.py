"""The dispatcher: the one who talks to the engine about claims and outcomes.

One exchange per trip settles what has finished and claims what there is room for. A trip goes out
when there is room enough, when the first outcome has lingered long enough, or when nothing else is
in hand. While it is under way the slots go on with what was claimed before.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from headrace.engine.base import Engine
from headrace.errors import WorkerUnhealthy
from headrace.loop import LONGEST_ALONE, Loop
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Released, Reserved, Settlement
from headrace.model.views import Exchange
from headrace.orchestrator.claiming.poll_backoff import PollBackoff
from headrace.orchestrator.claiming.prefetch import HORIZON, PATIENCE, PrefetchLimit
from headrace.orchestrator.claiming.reconcile import Reconciler
from headrace.orchestrator.claiming.unknown_tasks import UnknownTasks
from headrace.orchestrator.claiming.unstarted_jobs import InternalQueue, UnstartedJobs
from headrace.orchestrator.running.attempt import monotonic
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.orchestrator.settling.extra_settle import UNAVAILABLE, ExtraSettler
from headrace.orchestrator.settling.family_updates import FamilyUpdates
from headrace.orchestrator.settling.settle_buffer import SettleBuffer
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.dispatcher")

# How long outcomes wait for others. Jobs that are shorter than that, and more than one can hold,
# wait longer: what counts then is how much a trip costs, not that it holds up other slots.
LINGER = 0.005
BUSY_LINGER = HORIZON / 2
# Enough outcomes to make a trip worth while, before the linger is over.
EXCHANGE_BATCH = 400

RELEASED = Released()
RESERVED = Reserved()


class Dispatcher(Loop):
    """Fills the internal queue from the engine, and empties the settle buffer into it."""

    name = "dispatcher"

    def __init__(
        self,
        *,
        engine: Engine,
        queue: InternalQueue,
        queues: Sequence[str],
        slots: int,
        unknown_tasks: UnknownTasks,
        writer: AttemptWriter,
        family_updates: FamilyUpdates,
        telemetry: Telemetry,
        lease_seconds: float,
        connection_retries: int | None,
        register: Callable[[], Awaitable[str]],
        on_refused: Callable[[Sequence[str]], None],
    ) -> None:
        super().__init__()
        self.engine = engine
        self.unstarted = UnstartedJobs(queue)
        self.queues = tuple(queues) or None
        self.slots = slots
        self.unknown_tasks = unknown_tasks
        self.writer = writer
        self.family_updates = family_updates
        self.telemetry = telemetry
        self.connection_retries = connection_retries
        self.worker_id: str | None = None
        self.prefetch = PrefetchLimit(slots)
        self.buffer = SettleBuffer()
        self.extra_settler = ExtraSettler(engine=engine, buffer=self.buffer, on_reply=self._settled)
        # Every job that the engine believes to be ours, with its token.
        self.held: dict[str, int] = {}
        # Claimed and not finished: waiting for a slot, or running.
        self.claimed_count = 0
        self.draining = False
        # A trip is under way; its reply may bring more jobs.
        self._in_flight = False
        # Raised by whoever may make jobs ready; a claim that began before says nothing about them.
        self.wakeups_seen = 0
        self.poll = PollBackoff()
        self.reconciler = Reconciler(engine=engine, lease_seconds=lease_seconds)
        # Called when jobs have been put into the queue.
        self.on_jobs: Callable[[], None] = lambda: None
        # Takes back the oldest job that a thread could begin by itself, if there is one.
        self.take_back_offered: Callable[[], ClaimedJob | None] = lambda: None
        # The outcome of an attempt that ended here and told none.
        self.settle_silent: Callable[[ClaimedJob], Settlement | None] = lambda job: None
        self._register = register
        self._on_refused = on_refused
        self._queues_empty = False
        self._low_water = slots - 1
        self._linger = LINGER
        self._linger_until = 0.0

    # --- what slots and signals call

    def finished(self, job: ClaimedJob, settlement: Settlement | None, now: float) -> None:
        """An attempt has ended. None: its lease is lost, and there is nothing to say."""
        self.claimed_count -= 1
        if settlement is None:
            if self.held.get(job.id) == job.token:
                del self.held[job.id]
                self.reconciler.ended_silently(job)
            self.wake()
            return
        pending = self.buffer.pending
        pending.append(settlement)
        if len(pending) == 1:
            self._linger_until = now + self._linger
            self.wake()
        elif (
            len(pending) >= EXCHANGE_BATCH
            and self._in_flight
            and not self.writer.flush_before_settle
        ):
            self.extra_settler.send()
        elif self.claimed_count <= self._low_water or len(pending) == EXCHANGE_BATCH:
            self.wake()
        if type(settlement.outcome) is not Completed:
            self.wakeups_seen += 1  # it may be ready again at once
            self._queues_empty = False
            self.family_updates.after_settling(job, settlement.outcome)
        elif job.parent is not None:
            self.family_updates.after_settling(job, settlement.outcome)

    def on_work_signal(self) -> None:
        """Somebody says that jobs have become ready."""
        self.wakeups_seen += 1
        self._queues_empty = False
        self.wake()

    def on_jobs_pushed(self, worker_id: str, jobs: Sequence[ClaimedJob]) -> None:
        """The engine has leased jobs to a worker that did not ask just now. Some were lost if it is
        no worker's.
        """
        if not worker_id:
            self.reconciler.reply_lost = True
            self.wake()
        elif worker_id == self.worker_id:
            now = monotonic()
            self.poll.found(now)
            known = self.reconciler.known_already
            self.receive([job for job in jobs if not known(job, self.held)], now=now)

    def drain(self) -> None:
        """Claim no more, and give back what has not started."""
        self.draining = True
        self.release_unstarted(self.unstarted.ages.count)
        self.wake()

    def on_lease_lost(self) -> None:
        """The lease is lost: nothing is ours any more. What waits unstarted is given back, which
        counts only where nobody has taken over yet.
        """
        self.worker_id = None
        self.release_unstarted(self.unstarted.ages.count)
        self.held.clear()
        self.reconciler.reset()
        self.wake()

    def release_unstarted(self, count: int) -> None:
        """Return this many unstarted jobs, the oldest first, unharmed."""
        for _ in range(count):
            job = self.take_back_offered()
            if job is None:
                if self.unstarted.queue.empty():
                    return  # threads were quicker
                job = self.unstarted.take()
            self.unstarted.started()
            self.telemetry.released += 1
            self.finished(job, Settlement(job.id, job.token, RELEASED), 0.0)

    @property
    def idle(self) -> bool:
        """Whether nothing is claimed, running or waiting to be settled."""
        return not (self.claimed_count or self.buffer.pending or self.held)

    @property
    def in_flight(self) -> bool:
        """Whether the engine has yet to answer."""
        return self._in_flight or self.extra_settler.in_flight

    @property
    def unsettled(self) -> int:
        """How many outcomes the engine has not taken yet."""
        return len(self.buffer.pending) + self.claimed_count

    # --- the round

    async def tick(self) -> float:
        """One trip, if there is reason for one."""
        if self.worker_id is None and not self.draining:
            self.worker_id = await self._register()
        now = monotonic()
        if self.worker_id is not None and self.reconciler.due(now):
            await self._reconcile(self.worker_id)
            now = monotonic()
        overdue = self.unstarted.ages.overdue(now)
        if overdue:
            self.prefetch.reset()
            self.release_unstarted(overdue)
        room = self._room()
        if not self._should_exchange(room, now):
            return self._pause(room, now)
        await self._exchange(room, now)
        now = monotonic()
        room = self._room()
        return 0.0 if self._should_exchange(room, now) else self._pause(room, now)

    async def stop(self, patience: float = 5.0) -> None:
        """End after the trip that is under way."""
        await super().stop(patience)
        await self.extra_settler.stop()

    def backoff(self) -> float:
        """While it is not registered, there is no lease whose renewal tells of the engine."""
        seconds = super().backoff()
        return seconds if self.worker_id is not None else min(seconds, LONGEST_ALONE)

    def failed(self, error: Exception) -> None:
        """Go on trying, or give up where the settings say so."""
        self.telemetry.exchange_failures += 1
        retries = self.connection_retries
        if retries is not None and self.failures > retries:
            raise WorkerUnhealthy(
                f"the engine failed {self.failures} times in a row and connection_retries is "
                f"{retries}; the last error was {type(error).__name__}: {error}"
            ) from error

    def _room(self) -> int:
        if self.draining or self.worker_id is None or self.buffer.isolating:
            return 0
        ahead = self.prefetch.count()
        capacity = self.slots + ahead
        # With long jobs each free slot is worth a trip; with short ones half a load is.
        self._low_water = 0 if self._queues_empty else capacity // 2 if ahead else capacity - 1
        short = self.prefetch.mean < LINGER and not self._queues_empty
        self._linger = BUSY_LINGER if short else LINGER
        return max(capacity - self.claimed_count, 0)

    def _should_exchange(self, room: int, now: float) -> bool:
        pending = self.buffer.pending
        if pending and (
            self.claimed_count == 0
            or now >= self._linger_until
            or len(pending) >= EXCHANGE_BATCH
            or self.draining
        ):
            return True
        if room <= 0:
            return False
        if now >= self.poll.next:
            return True
        return (
            not self._queues_empty
            and self.claimed_count <= self._low_water
            and now >= self.poll.ignore_signals_until
        )

    def _pause(self, room: int, now: float) -> float:
        until = self.reconciler.next
        if self.buffer.pending:
            until = min(until, self._linger_until)
        if room > 0:
            until = min(until, self.poll.next)
            if not self._queues_empty and self.claimed_count <= self._low_water:
                until = min(until, self.poll.ignore_signals_until)
        oldest = self.unstarted.ages.oldest()
        if oldest is not None:
            until = min(until, oldest + PATIENCE)
        return max(until - now, 0.0)

    async def _exchange(self, room: int, began: float) -> None:
        settlements = self.buffer.take()
        wakeups_seen, worker_id = self.wakeups_seen, self.worker_id
        self._in_flight = True
        try:
            if self.writer.flush_before_settle:
                # What these attempts said last is written before their outcomes are.
                await self.writer.flush()
            reply = await self.engine.exchange(
                settlements,
                worker_id=worker_id if room else None,
                queues=self.queues,
                limit=room,
            )
        except BaseException as error:
            # Whether it arrived is not known: send again, and look for claims whose reply is lost.
            self.buffer.put_back(settlements, may_be_poisoned=not isinstance(error, UNAVAILABLE))
            self.reconciler.reply_lost = True
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
            self._queues_empty = len(reply.jobs) < room and wakeups_seen == self.wakeups_seen
            if reply.jobs:
                self.poll.found(now)
            else:
                self.telemetry.listening = self.engine.listening
                self.poll.empty(now, listening=self.telemetry.listening, asked=not settlements)
        self.receive(reply.jobs, now=now, ours=worker_id == self.worker_id)

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
        """Take in claimed jobs; give them back when the worker stops or has a new name by now."""
        if not jobs:
            return
        self.telemetry.claimed += len(jobs)
        self.claimed_count += len(jobs)
        self.prefetch.observe_size(sum([len(job.args) for job in jobs]) / len(jobs))
        held = self.held
        for job in jobs:
            held[job.id] = job.token
        self.reconciler.received(jobs)
        unknown = self.unknown_tasks.among(jobs)
        if unknown:
            self.telemetry.released += len(unknown)
            for job in unknown:
                self.finished(job, Settlement(job.id, job.token, RESERVED), now)
            left = {job.id for job in unknown}
            jobs = [job for job in jobs if job.id not in left]
        self.unstarted.put(jobs, now)
        if self.draining or not ours:
            self.release_unstarted(self.unstarted.ages.count)
        else:
            self.on_jobs()

    async def _reconcile(self, worker_id: str) -> None:
        found = await self.reconciler.compare(worker_id, self.held)
        if jobs := found.unstarted:
            log.warning("Took on %d jobs whose claim was answered into the void", len(jobs))
            self.telemetry.adopted += len(jobs)
            self.receive(jobs, now=monotonic())
        for job in found.silent:
            self.held[job.id] = job.token
            self.claimed_count += 1
            self.finished(job, self.settle_silent(job), monotonic())
