"""Worker slots: each takes a job from the internal queue, runs it, and records its outcome."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Coroutine, Iterator
from typing import Any

from headrace.clock import Clock
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Outcome, Settlement, Snoozed
from headrace.model.sealed import SEALED_ERROR
from headrace.orchestrator.running.attempt import Attempt, Deadlines
from headrace.orchestrator.running.chunk_attempt import ChunkAttempt
from headrace.orchestrator.running.chunk_calls import ChunkCalls
from headrace.orchestrator.running.executor import Executor
from headrace.orchestrator.running.outcomes import outcome_of_fault
from headrace.orchestrator.running.slot import JobSource, Slot
from headrace.orchestrator.running.thread_chain import AwaitableResult, ThreadAttempt, ThreadChain
from headrace.orchestrator.running.threads import START_AGAIN_SECONDS, NoThread, Threads
from headrace.orchestrator.settling.attempt_log import error_text
from headrace.orchestrator.settling.settlements import AttemptRecorder
from headrace.task import Task

log = logging.getLogger("headrace.worker")


class Slots:
    """All slots of one orchestrator. They only read the internal queue.

    A free slot has no task that waits: `fill` starts jobs in free slots, and the task of a job that
    has ended starts the next one. So a job costs one task and one turn of the event loop.
    """

    def __init__(
        self,
        *,
        size: int,
        source: JobSource,
        threads: Threads,
        executor: Executor,
        recorder: AttemptRecorder,
        clock: Clock,
        grace_seconds: float,
    ) -> None:
        self.source = source
        self.unstarted = source.unstarted
        self.chunks = source.chunks
        self.threads = threads
        self.executor = executor
        self.recorder = recorder
        self.slots = [Slot(number) for number in range(size)]
        self.deadlines = Deadlines(
            clock=clock,
            grace_seconds=grace_seconds,
            attempts=self.attempts,
            give_up=self.give_up,
            on_broken=self._on_broken,
        )
        self.thread_chain = ThreadChain(
            threads=threads,
            call=executor.run_in_thread,
            now=self.deadlines.now,
            on_over=self._on_thread_done,
            on_collected=self.fill,
        )
        self.chunk_calls = ChunkCalls(
            chunks=source.chunks,
            executor=executor,
            recorder=recorder,
            deadlines=self.deadlines,
            create_task=self._start_task,
            on_over=self._next,
        )
        self._free: list[Slot] = []
        # Handlers that do not stop: referenced here, or the garbage collector would end them.
        self._given_up: set[asyncio.Future[None]] = set()
        # Every job starts with these context variables, whatever other jobs set in theirs.
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self._create_task = self._loop.create_task

    def start(self) -> None:
        self._free = self.slots[::-1]
        self.fill()

    def stop(self) -> None:
        """Take no more jobs. The caller makes sure that no slot is busy."""
        self.deadlines.stop()
        self.thread_chain.stop()
        for slot in self.slots:
            slot.closed = True
        self._free, self.slots = [], []

    def fill(self) -> None:
        """Start jobs of the queue in free slots, and offer the next ones to threads."""
        free, queue, chunks = self._free, self.unstarted.queue, self.chunks.ready
        while free and (chunks or not queue.empty()) and self._begin(free.pop()):
            pass
        # What is offered takes slots before a chunk that waits for one.
        if self.thread_chain.running and not chunks:
            self._offer_next()

    def running(self) -> list[Attempt]:
        """Return the attempts that run now, also those that a thread has just begun."""
        self.thread_chain.collect()
        return list(self.attempts())

    def attempts(self) -> Iterator[Attempt]:
        """Yield the attempts that run now, as far as the loop has collected. From any thread."""
        for slot in self.slots:
            if slot.attempt is not None:
                yield slot.attempt

    def tasks(self) -> list[asyncio.Future[None]]:
        return [attempt.task for attempt in self.running() if attempt.task is not None]

    @property
    def busy(self) -> int:
        return sum(1 for slot in self.slots if slot.attempt is not None)

    def find(self, job_id: str, token: int) -> Attempt | None:
        """Return a running attempt. An earlier one at the same job may not have ended yet."""
        for attempt in self.running():
            chunk = attempt.members if isinstance(attempt, ChunkAttempt) else (attempt,)
            for each in chunk:
                if each.job.id == job_id and each.job.token == token:
                    return each
        return None

    def take_back_offered(self) -> ClaimedJob | None:
        return self.thread_chain.take_back_offered()

    def settle_silent(self, job: ClaimedJob) -> Settlement:
        return self.recorder.settle_silent(job)

    def give_up(self, attempt: Attempt) -> None:
        """Settle the attempt of a handler that does not stop, and free its slot."""
        slot = self._slot_of(attempt)
        if slot is None:
            return
        if isinstance(attempt.task, ThreadAttempt):
            attempt.task.cancel()
            return
        job = attempt.job
        log.error(
            "The handler of job %s (%s, attempt %d) was told to stop (%s) and does not; it is "
            "abandoned and what it returns will be dropped",
            job.id,
            job.task,
            job.attempt,
            attempt.reason.value if attempt.reason else "stopped",
        )
        self.recorder.telemetry.abandoned += 1
        attempt.abandoned = True
        if isinstance(attempt, ChunkAttempt):
            self.chunk_calls.finish(slot, attempt)
        else:
            self._finish(slot, attempt, self.executor.interrupted(attempt), self.deadlines.now())
        if attempt.task is not None:
            self._given_up.add(attempt.task)
            attempt.task.add_done_callback(self._given_up.discard)
        self._next(slot)

    def _begin(self, slot: Slot) -> bool:
        """Start the next job, if there is one. Return False if it could not be started."""
        now = self.deadlines.now()
        if self.chunks.ready:
            self.chunk_calls.begin(slot, now)
            return True
        thread_attempt = self.thread_chain.take() if self.thread_chain.offered else None
        if thread_attempt is not None:
            attempt = thread_attempt.attempt
            attempt.start(now)
        elif self.unstarted.queue.empty():
            self._free.append(slot)
            return True
        else:
            job = self.unstarted.take()
            attempt = Attempt(job, now)
            task = self.executor.thread_task(job)
            thread_attempt = None if task is None else self._thread_attempt(attempt, task)
        self._started(slot, attempt)
        if thread_attempt is not None:
            thread_attempt.slot = slot
            try:
                self.thread_chain.start(thread_attempt)
            except NoThread as error:
                self._not_started(slot, attempt, error)
                return False
            return True
        # A task of its own keeps context variables and cancellation from the next job.
        attempt.task = self._create_task(self._run(slot, attempt), context=self._context.copy())
        return True

    def _started(self, slot: Slot, attempt: Attempt) -> None:
        self.unstarted.started()
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
        except BaseException as error:  # a fault of ours must not cost a slot
            if not attempt.in_its_task():
                raise
            outcome = self._faulty(attempt, error)
        if not attempt.abandoned:
            self._finish(slot, attempt, outcome, self.deadlines.now())
            self._next(slot)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._create_task(work, context=self._context.copy())

    def _next(self, slot: Slot) -> None:
        """The slot is free: start the next job, or wait for one."""
        if slot.closed or self.source.cancelled:
            self.thread_chain.stop()
            return  # the program ends, and waits for no more tasks
        self._begin(slot)

    # --- plain functions in threads (see `thread_chain`)

    def _thread_attempt(self, attempt: Attempt, task: Task[..., Any]) -> ThreadAttempt:
        attempt.begun = attempt.cooperative = True
        thread_attempt = ThreadAttempt(
            attempt, task, self._context.copy(), self._abandon, self._loop
        )
        attempt.task = thread_attempt
        return thread_attempt

    def _offer_next(self) -> None:
        """Offer the next jobs, as far as they are plain functions."""
        unstarted, head = self.unstarted, self.unstarted.queue.head
        room = self.thread_chain.room(len(self.slots), self.source.prefetch.mean)
        while (
            room > 0 and head is not None and (task := self.executor.thread_task(head)) is not None
        ):
            self.thread_chain.offer(self._thread_attempt(Attempt(unstarted.take(), 0.0), task))
            head = unstarted.queue.head
            room -= 1

    def _on_thread_done(self, thread_attempt: ThreadAttempt) -> None:
        """A thread has ended an attempt, and has begun its successor if there is one."""
        slot, outcome = thread_attempt.slot, thread_attempt.outcome
        if isinstance(outcome, AwaitableResult):
            # No thread has it any more: from its first step on it can be cancelled at once.
            thread_attempt.attempt.begun = thread_attempt.attempt.cooperative = False
            thread_attempt.attempt.task = self._create_task(
                self._run_awaitable(thread_attempt, outcome), context=thread_attempt.context
            )
            thread_attempt.set_result(None)  # waiters have to read the slot again
            return
        self._finish(slot, thread_attempt.attempt, outcome, thread_attempt.ended)
        thread_attempt.set_result(None)
        if thread_attempt.successor is None:
            self._next(slot)
        else:
            self._started(slot, thread_attempt.successor.attempt)

    async def _run_awaitable(self, thread_attempt: ThreadAttempt, rest: AwaitableResult) -> None:
        slot, attempt = thread_attempt.slot, thread_attempt.attempt
        try:
            attempt.begun = True
            outcome = await self.executor.finish_awaitable(attempt, thread_attempt.task, rest)
        except BaseException as error:  # as above
            if not attempt.in_its_task():
                raise
            outcome = self._faulty(attempt, error)
        if not attempt.abandoned:
            self._finish(slot, attempt, outcome, self.deadlines.now())
            self._next(slot)

    def _abandon(self, thread_attempt: ThreadAttempt) -> bool:
        """Abandon a thread that does not stop, and free its slot."""
        if not self.thread_chain.abandon(thread_attempt):
            return False
        attempt = thread_attempt.attempt
        if thread_attempt.begun:
            self.threads.warn(attempt)
        self._finish(
            thread_attempt.slot, attempt, self.executor.interrupted(attempt), self.deadlines.now()
        )
        thread_attempt.set_result(None)
        self._next(thread_attempt.slot)
        return True

    # --- errors
    #
    # Invariant: whatever goes wrong, an attempt that has begun ends in one outcome that spends it,
    # one that has not begun spends nothing, and its slot is free for the next job.

    def _on_broken(self, attempt: Attempt, error: BaseException) -> None:
        """An attempt ended without an outcome: settle it, and start the next job."""
        slot, thread_attempt = self._slot_of(attempt), attempt.task
        if isinstance(thread_attempt, ThreadAttempt) and not self.thread_chain.abandon(
            thread_attempt
        ):
            return  # it is over, and will be collected
        if slot is not None:
            attempt.abandoned = True
            if isinstance(attempt, ChunkAttempt):
                self.chunk_calls.finish(slot, attempt, error)
            else:
                self._finish(slot, attempt, self._faulty(attempt, error), self.deadlines.now())
            self._next(slot)

    def _faulty(self, attempt: Attempt, error: BaseException) -> Outcome | None:
        """Return the outcome of an attempt that a fault of ours has ended."""
        job = attempt.job
        with contextlib.suppress(Exception):  # an error may raise when it is formatted
            log.critical(
                "Job %s (%s, attempt %d) broke its slot, which goes on with the next job: %s",
                job.id,
                job.task,
                job.attempt,
                SEALED_ERROR if job.sealed else error_text(error),
                exc_info=None if job.sealed else error,
            )
        if attempt.reason is not None:
            return self.executor.interrupted(attempt)
        return self.executor.sealed(job, outcome_of_fault(job, None, error))

    def _not_started(self, slot: Slot, attempt: Attempt, error: NoThread) -> None:
        """Put off a job that could not be started, for another worker or a later time."""
        job = attempt.job
        log.error("Job %s (%s) is put off for %g s: %s", job.id, job.task, error.delay, error)
        self._finish(slot, attempt, Snoozed(error.delay), self.deadlines.now())
        self._free.append(slot)
        self._loop.call_later(START_AGAIN_SECONDS, self.fill)

    def _finish(self, slot: Slot, attempt: Attempt, outcome: Outcome | None, now: float) -> None:
        slot.attempt = None
        attempt.over = True
        try:
            self.recorder.record(attempt, outcome, now)
        except Exception:  # the caller has other attempts to end
            log.critical("The outcome of job %s got lost", attempt.job.id, exc_info=True)

    def _slot_of(self, attempt: Attempt) -> Slot | None:
        return next((slot for slot in self.slots if slot.attempt is attempt), None)
