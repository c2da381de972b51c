"""Worker slots: each takes a job from the internal queue, runs it, and hands in its outcome."""

from __future__ import annotations

import asyncio
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

    __slots__ = ("attempt", "number", "task")

    def __init__(self, number: int) -> None:
        self.number = number
        self.attempt: Attempt | None = None
        self.task: asyncio.Task[None] | None = None


class Slots:
    """All slots of one orchestrator. They only ever read the internal queue."""

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
        self.tasks: list[asyncio.Task[None]] = []
        self.deadlines = Deadlines(
            clock=clock,
            grace_seconds=grace_seconds,
            attempts=self.attempts,
            give_up=self.give_up,
        )
        # Handlers that did not stop when told to: kept from the garbage collector until they end.
        self._given_up: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to take jobs."""
        for slot in self.slots:
            self._open(slot)

    async def stop(self) -> None:
        """End all slots. Whoever calls this has seen to it that none is busy."""
        self.deadlines.stop()
        tasks = [*self.tasks]
        for task in tasks:
            task.cancel()
        self.tasks.clear()
        await asyncio.gather(*tasks, return_exceptions=True)

    def attempts(self) -> Iterator[Attempt]:
        """The attempts that run now."""
        for slot in self.slots:
            if slot.attempt is not None:
                yield slot.attempt

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
        slot = next((each for each in self.slots if each.attempt is attempt), None)
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
        if slot.task is not None:
            self._given_up.add(slot.task)
            slot.task.add_done_callback(self._given_up.discard)
            self.tasks.remove(slot.task)
        fresh = self.slots[self.slots.index(slot)] = Slot(slot.number)
        if not self.dispatcher.draining:
            self._open(fresh)

    def _open(self, slot: Slot) -> None:
        slot.task = asyncio.create_task(self._serve(slot), name=f"headrace slot {slot.number}")
        self.tasks.append(slot.task)
        slot.task.add_done_callback(lambda task: self._ended(slot, task))

    def _ended(self, slot: Slot, task: asyncio.Task[None]) -> None:
        """A slot ends only when it is cancelled or given up. Anything else is a fault of ours:
        say so, let another slot take its place, and have its job found again.
        """
        if task.cancelled() or task.exception() is None or task not in self.tasks:
            return
        log.critical(
            "Slot %d broke; another takes its place", slot.number, exc_info=task.exception()
        )
        self.tasks.remove(task)
        attempt, slot.attempt = slot.attempt, None
        if attempt is not None:
            self.dispatcher.finished(attempt.job, None, 0.0)
        self._open(slot)

    async def _serve(self, slot: Slot) -> None:
        get, taken, run = self.queue.get, self.dispatcher.taken, self.executor.run
        now, deadlines = self.deadlines.now, self.deadlines
        create_task = asyncio.get_running_loop().create_task
        # Whoever cancels a slot, be it at the end of the program, must see it end.
        while slot.task is not None and not slot.task.cancelling():
            job = await get()
            taken()
            attempt = slot.attempt = Attempt(job, now())
            if attempt.deadline < deadlines.next:
                deadlines.arm(attempt.deadline)
            # A task of its own keeps context variables and cancellation from the next job.
            task = attempt.task = create_task(run(attempt))
            try:
                outcome = await task
            except asyncio.CancelledError:
                outcome = self.executor.interrupted(attempt)
            if attempt.abandoned:
                return
            # Settle before freeing the slot, or a stop here would drop a finished job.
            self._finish(slot, attempt, outcome)

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
