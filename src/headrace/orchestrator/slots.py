"""Worker slots: each takes a job from the internal queue, runs it, and hands in its outcome."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Iterator
from typing import Any

from headrace.clock import Clock
from headrace.model.outcome import Outcome
from headrace.orchestrator.attempt import Attempt
from headrace.orchestrator.books import Books
from headrace.orchestrator.deadlines import Deadlines
from headrace.orchestrator.dispatcher import Dispatcher
from headrace.orchestrator.executor import Executor
from headrace.orchestrator.line import Line
from headrace.orchestrator.relay import Errand, Relay, Rest
from headrace.orchestrator.threads import Threads
from headrace.task import Task

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
        line: Line,
        threads: Threads,
        dispatcher: Dispatcher,
        executor: Executor,
        books: Books,
        clock: Clock,
        grace_seconds: float,
    ) -> None:
        self.line = line
        self.threads = threads
        self.dispatcher = dispatcher
        self.executor = executor
        self.books = books
        self.slots = [Slot(number) for number in range(size)]
        self.deadlines = Deadlines(
            clock=clock,
            grace_seconds=grace_seconds,
            attempts=self.attempts,
            give_up=self.give_up,
            broken=self._broken,
        )
        self.relay = Relay(
            executor=threads.executor,
            call=executor.call,
            now=self.deadlines.now,
            on_over=self._over,
            on_collected=self.fill,
        )
        dispatcher.withdraw = self.relay.withdraw
        self._free: list[Slot] = []
        # Handlers that did not stop when told to: kept from the garbage collector until they end.
        self._given_up: set[asyncio.Future[None]] = set()
        # What every job starts with, whatever others set in their context variables.
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self._create_task = self._loop.create_task

    def start(self) -> None:
        """Begin to take jobs."""
        self._free = self.slots[::-1]
        self.fill()

    def stop(self) -> None:
        """Take no more jobs. Whoever calls this has seen to it that no slot is busy."""
        self.deadlines.stop()
        self.relay.stop()
        for slot in self.slots:
            slot.closed = True
        self._free, self.slots = [], []

    def fill(self) -> None:
        """Start jobs of the queue in free slots, and lay out the next for threads."""
        free, queue = self._free, self.line.queue
        while free and not queue.empty():
            self._begin(free.pop())
        if self.relay.running:
            self._lay_out()

    def running(self) -> list[Attempt]:
        """The attempts that run now, also those that a thread has just begun."""
        self.relay.collect()
        return list(self.attempts())

    def attempts(self) -> Iterator[Attempt]:
        """The attempts that run now, as far as the event loop has heard. From any thread."""
        for slot in self.slots:
            if slot.attempt is not None:
                yield slot.attempt

    def tasks(self) -> list[asyncio.Future[None]]:
        """The tasks of the attempts that run now."""
        return [attempt.task for attempt in self.running() if attempt.task is not None]

    @property
    def busy(self) -> int:
        """How many slots run a job."""
        return sum(1 for slot in self.slots if slot.attempt is not None)

    def find(self, job_id: str, token: int) -> Attempt | None:
        """A running attempt. An earlier one at the same job may still be on its way out."""
        for attempt in self.running():
            if attempt.job.id == job_id and attempt.job.token == token:
                return attempt
        return None

    def give_up(self, attempt: Attempt) -> None:
        """Settle for a handler that does not stop, and go on in a fresh slot without it."""
        slot = self._slot_of(attempt)
        if slot is None:
            return
        if isinstance(attempt.task, Errand):
            attempt.task.cancel()
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
        self.books.telemetry.abandoned += 1
        attempt.abandoned = True
        self._finish(slot, attempt, self.executor.interrupted(attempt), self.deadlines.now())
        if attempt.task is not None:
            self._given_up.add(attempt.task)
            attempt.task.add_done_callback(self._given_up.discard)
        self._next(slot)

    def _begin(self, slot: Slot) -> None:
        """Start the next job, if there is one."""
        now = self.deadlines.now()
        errand = self.relay.take() if self.relay.laid_out else None
        if errand is not None:
            attempt = errand.attempt
            attempt.start(now)
        elif self.line.queue.empty():
            self._free.append(slot)
            return
        else:
            job = self.line.take()
            attempt = Attempt(job, now)
            task = self.executor.plain(job)
            errand = None if task is None else self._errand(attempt, task)
        self._started(slot, attempt)
        if errand is not None:
            errand.slot = slot
            self.relay.start(errand)
            return
        # A task of its own keeps context variables and cancellation from the next job.
        attempt.task = self._create_task(self._run(slot, attempt), context=self._context.copy())

    def _started(self, slot: Slot, attempt: Attempt) -> None:
        self.line.started()
        slot.attempt = attempt
        if attempt.deadline <= self.deadlines.next:
            self.deadlines.arm(attempt.deadline)

    async def _run(self, slot: Slot, attempt: Attempt) -> None:
        try:
            attempt.begun = True
            if attempt.reason is None:
                outcome = await self.executor.run(attempt)
            else:
                outcome = self.executor.interrupted(attempt)
            if attempt.abandoned:
                return
            self._finish(slot, attempt, outcome, self.deadlines.now())
            self._next(slot)
        except Exception as error:  # a fault of ours must not cost a slot
            self._broken(attempt, error)

    def _next(self, slot: Slot) -> None:
        """The slot is free: take the next job, or wait for one."""
        if slot.closed or self.dispatcher.cancelled:
            self.relay.stop()
            return  # the program ends, and waits for no more tasks
        self._begin(slot)

    # --- plain functions, whose threads go on by themselves

    def _errand(self, attempt: Attempt, task: Task[..., Any]) -> Errand:
        attempt.begun = attempt.cooperative = True
        errand = Errand(attempt, task, self._context.copy(), self._leave, self._loop)
        attempt.task = errand
        return errand

    def _lay_out(self) -> None:
        """Lay out the next jobs, as far as they are for threads."""
        line, head = self.line, self.line.queue.head
        room = self.relay.room(len(self.slots), self.dispatcher.pace.mean)
        while room > 0 and head is not None and (task := self.executor.plain(head)) is not None:
            self.relay.lay_out(self._errand(Attempt(line.take(), 0.0), task))
            head = line.queue.head
            room -= 1

    def _over(self, errand: Errand) -> None:
        """A thread has ended an attempt, and has begun the next one if there was any."""
        slot, outcome = errand.slot, errand.outcome
        if isinstance(outcome, Rest):
            errand.attempt.task = self._create_task(
                self._await(errand, outcome), context=errand.context
            )
            errand.set_result(None)  # whoever waits for it has to look again
            return
        try:
            self._finish(slot, errand.attempt, outcome, errand.ended)
        except Exception as error:  # a fault of ours must not cost a slot
            self._write_off(slot, errand.attempt, error)
        errand.set_result(None)
        if errand.following is None:
            self._next(slot)
        else:
            self._started(slot, errand.following.attempt)

    async def _await(self, errand: Errand, rest: Rest) -> None:
        slot, attempt = errand.slot, errand.attempt
        try:
            outcome = await self.executor.rest(attempt, errand.task, rest)
            if not attempt.abandoned:
                self._finish(slot, attempt, outcome, self.deadlines.now())
                self._next(slot)
        except Exception as error:  # as above
            self._broken(attempt, error)

    def _leave(self, errand: Errand) -> bool:
        """Leave a thread behind that does not stop, and go on without it."""
        if not self.relay.leave(errand):
            return False
        attempt = errand.attempt
        self.threads.abandon(errand.thread.future, attempt)
        self._finish(errand.slot, attempt, self.executor.interrupted(attempt), self.deadlines.now())
        errand.set_result(None)
        self._next(errand.slot)
        return True

    # --- what may go wrong

    def _broken(self, attempt: Attempt, error: BaseException | None) -> None:
        """The task of an attempt ended without an outcome: go on with the next job."""
        slot = self._slot_of(attempt)
        if slot is not None:
            self._write_off(slot, attempt, error)
            self._next(slot)

    def _write_off(self, slot: Slot, attempt: Attempt, error: BaseException | None) -> None:
        """Say that an attempt has no outcome, and have its job found again."""
        log.critical("Slot %d broke; it goes on with the next job", slot.number, exc_info=error)
        slot.attempt = None
        self.dispatcher.finished(attempt.job, None, 0.0)

    def _finish(self, slot: Slot, attempt: Attempt, outcome: Outcome | None, now: float) -> None:
        self.books.close(attempt, outcome, now)
        slot.attempt = None

    def _slot_of(self, attempt: Attempt) -> Slot | None:
        return next((slot for slot in self.slots if slot.attempt is attempt), None)
