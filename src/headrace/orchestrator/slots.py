"""Worker slots: each takes a job from the internal queue, runs it, and hands in its outcome."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

from headrace.clock import Clock
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Failed, Outcome, Retry, Settlement, TimedOut
from headrace.orchestrator.attempt import Attempt
from headrace.orchestrator.deadlines import Deadlines
from headrace.orchestrator.dispatcher import Dispatcher
from headrace.orchestrator.executor import Executor
from headrace.orchestrator.journal import entry_of, name_of
from headrace.orchestrator.notes import Notes
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.worker")


class Slot:
    """A place for one running job."""

    __slots__ = ("attempt", "closed", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.attempt: Attempt | None = None
        self.closed = False

    def done(self) -> bool:
        """Whether it will take no more jobs."""
        return self.closed


class Slots:
    """All slots of one orchestrator. They only ever read the internal queue.

    A free slot has no task that waits: `fill` starts jobs in free slots, and the task of a job that
    has ended starts the next one. So a job costs one task and one turn of the event loop.
    """

    def __init__(
        self,
        *,
        size: int,
        queue: asyncio.Queue[ClaimedJob],
        dispatcher: Dispatcher,
        executor: Executor,
        notes: Notes,
        clock: Clock,
        grace_seconds: float,
        telemetry: Telemetry,
        worker_name: str,
    ) -> None:
        self.queue = queue
        self.dispatcher = dispatcher
        self.executor = executor
        self.notes = notes
        self.clock = clock
        self.telemetry = telemetry
        self.worker_name = worker_name
        self.slots = [Slot(number) for number in range(size)]
        self.deadlines = Deadlines(
            clock=clock,
            grace_seconds=grace_seconds,
            attempts=self.attempts,
            give_up=self.give_up,
            broken=self._broken,
        )
        self._free: list[Slot] = []
        # Handlers that did not stop when told to: kept from the garbage collector until they end.
        self._given_up: set[asyncio.Task[None]] = set()
        # What every job starts with, whatever others set in their context variables.
        self._context = contextvars.copy_context()
        self._create_task = asyncio.get_running_loop().create_task

    def start(self) -> None:
        """Begin to take jobs."""
        self._free = self.slots[::-1]
        self.fill()

    def stop(self) -> None:
        """Take no more jobs. Whoever calls this has seen to it that no slot is busy."""
        self.deadlines.stop()
        for slot in self.slots:
            slot.closed = True
        self._free, self.slots = [], []

    def fill(self) -> None:
        """Start jobs of the queue in free slots."""
        free, queue = self._free, self.queue
        while free and not queue.empty():
            self._begin(free.pop())

    def attempts(self) -> Iterator[Attempt]:
        """The attempts that run now."""
        for slot in self.slots:
            if slot.attempt is not None:
                yield slot.attempt

    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks of the attempts that run now."""
        return [attempt.task for attempt in self.attempts() if attempt.task is not None]

    @property
    def busy(self) -> int:
        """How many slots run a job."""
        return sum(1 for slot in self.slots if slot.attempt is not None)

    def find(self, job_id: str) -> Attempt | None:
        """The running attempt at a job."""
        for attempt in self.attempts():
            if attempt.job.id == job_id:
                return attempt
        return None

    def give_up(self, attempt: Attempt) -> None:
        """Settle for a handler that does not stop, and go on in a fresh slot without it."""
        slot = self._slot_of(attempt)
        if slot is None:
            return
        job = attempt.job
        log.error(
            "The handler of job %s (%s, attempt %d) was told to stop (%s) and does not; it is "
            "left alone and what it returns will be dropped",
            job.id,
            job.task,
            job.attempt,
            attempt.reason.value if attempt.reason else "stopped",
        )
        self.telemetry.abandoned += 1
        attempt.abandoned = True
        self._finish(slot, attempt, self.executor.interrupted(attempt))
        if attempt.task is not None:
            self._given_up.add(attempt.task)
            attempt.task.add_done_callback(self._given_up.discard)
        self._next(slot)

    def _begin(self, slot: Slot) -> None:
        job = self.queue.get_nowait()
        self.dispatcher.taken()
        deadlines = self.deadlines
        attempt = slot.attempt = Attempt(job, deadlines.now())
        if attempt.deadline <= deadlines.next:
            deadlines.arm(attempt.deadline)
        # A task of its own keeps context variables and cancellation from the next job.
        attempt.task = self._create_task(self._run(slot, attempt), context=self._context.copy())

    async def _run(self, slot: Slot, attempt: Attempt) -> None:
        try:
            attempt.begun = True
            if attempt.reason is None:
                outcome = await self.executor.run(attempt)
            else:
                outcome = self.executor.interrupted(attempt)
            if attempt.abandoned:
                return
            self._finish(slot, attempt, outcome)
            self._next(slot)
        except Exception as error:  # a fault of ours must not cost a slot
            self._broken(attempt, error)

    def _next(self, slot: Slot) -> None:
        """The slot is free: take the next job, or wait for one."""
        if slot.closed or self.dispatcher.cancelled:
            return  # the program ends, and waits for no more tasks
        if self.queue.empty():
            self._free.append(slot)
        else:
            self._begin(slot)

    def _broken(self, attempt: Attempt, error: BaseException | None) -> None:
        """The task of an attempt ended without an outcome: say so, free the slot, and have the job
        found again.
        """
        slot = self._slot_of(attempt)
        if slot is None:
            return
        log.critical("Slot %d broke; it goes on with the next job", slot.number, exc_info=error)
        slot.attempt = None
        self.dispatcher.finished(attempt.job, None, 0.0)
        self._next(slot)

    def _slot_of(self, attempt: Attempt) -> Slot | None:
        return next((slot for slot in self.slots if slot.attempt is attempt), None)

    def _finish(self, slot: Slot, attempt: Attempt, outcome: Outcome | None) -> None:
        job, now = attempt.job, self.deadlines.now()
        seconds = now - attempt.started
        counters = self.telemetry.of(job.task, job.queue)
        counters.wait.observe(job.wait)
        counters.run.observe(seconds)
        self.dispatcher.pace.learn(seconds)
        if type(outcome) is Completed:
            counters.completed += 1
            settlement: Settlement | None = Settlement(job.id, job.token, outcome)
        else:
            settlement = self._uncompleted(attempt, outcome, seconds)
            counters.count("lost" if outcome is None else name_of(outcome))
        unsent = self.notes.unsent
        if unsent and job.id in unsent:
            if settlement is None:
                self.notes.forget(job)
            else:
                self.notes.owed = True
        self.dispatcher.finished(job, settlement, now - self.clock.offset)
        slot.attempt = None

    def _uncompleted(
        self, attempt: Attempt, outcome: Outcome | None, seconds: float
    ) -> Settlement | None:
        job = attempt.job
        if outcome is None:
            log.warning(
                "Job %s (%s, attempt %d) belongs to another worker now; this attempt's result "
                "was discarded",
                job.id,
                job.task,
                job.attempt,
            )
            return None
        _report(job, outcome, seconds)
        now = self.clock.now()
        entry = entry_of(
            job,
            outcome,
            worker=self.worker_name,
            started_at=datetime.fromtimestamp(now - seconds, UTC),
            ended_at=datetime.fromtimestamp(now, UTC),
        )
        return Settlement(job.id, job.token, outcome, entry)


def _report(job: ClaimedJob, outcome: Outcome, seconds: float) -> None:
    match outcome:
        case Retry(failure=failure, delay=delay):
            level, ended, then = logging.WARNING, "failed", f"; tried again in {delay:g} s"
        case Failed(failure=failure):
            level, ended, then = logging.ERROR, "failed", "; not tried again"
        case TimedOut(failure=failure):
            level, ended, then = logging.ERROR, "timed out", "; not tried again"
        case _:
            log.info("Job %s (%s): %s", job.id, job.task, name_of(outcome))
            return
    log.log(
        level,
        "Job %s (%s): attempt %d of %d %s after %.3f s with %s: %s%s",
        job.id,
        job.task,
        job.attempt,
        job.max_attempts,
        ended,
        seconds,
        failure.type,
        failure.message,
        then,
    )
