"""Runs chunks: one call of a handler for several jobs, each of which is settled for itself.

Invariant: every job of a chunk that was taken gets one outcome: by its handler (`complete`, `fail`,
what it returns or raises), or else when the call ends, however that comes about.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from headrace.errors import NotRetryable
from headrace.model.outcome import RESERVED, Outcome
from headrace.orchestrator.claiming.chunks import ChunkCollector
from headrace.orchestrator.running.attempt import Attempt, Deadlines, Reason, arguments_of
from headrace.orchestrator.running.chunk_attempt import ChunkAnswer, ChunkAttempt, ChunkMember
from headrace.orchestrator.running.chunk_context import WorkerChunk, WorkerChunkJob
from headrace.orchestrator.running.chunk_layers import ChunkLayers
from headrace.orchestrator.running.context import JobContext
from headrace.orchestrator.running.executor import CANCELLED_BEFORE_START, Executor, awaited
from headrace.orchestrator.running.outcomes import outcome_of_fault
from headrace.orchestrator.running.slot import Slot
from headrace.orchestrator.settling.settlements import AttemptRecorder
from headrace.task import Task

log = logging.getLogger("headrace.worker")


class ChunkCalls:
    """The calls of one worker."""

    def __init__(
        self,
        *,
        chunks: ChunkCollector,
        executor: Executor,
        recorder: AttemptRecorder,
        deadlines: Deadlines,
        create_task: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        on_over: Callable[[Slot], None],
    ) -> None:
        self.chunks = chunks
        self.executor = executor
        self.recorder = recorder
        self.deadlines = deadlines
        self._create_task = create_task
        self._on_over = on_over
        # Answers that handlers gave in their threads.
        self._answered: deque[ChunkMember] = deque()
        self._wakeup_pending = False
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()

    def begin(self, slot: Slot, now: float) -> None:
        """Start the chunk that waits longest, in a free slot."""
        jobs = self.chunks.take()
        call = ChunkAttempt(jobs[0], now, handler=self.executor.tasks.get(jobs[0].task))
        call.members = [ChunkMember(job, now, call=call, cooperative=True) for job in jobs]
        slot.attempt = call
        if call.deadline <= self.deadlines.next:
            self.deadlines.arm(call.deadline)
        call.task = self._create_task(self._in_slot(slot, call))

    async def _in_slot(self, slot: Slot, call: ChunkAttempt) -> None:
        fault: BaseException | None = None
        try:
            call.begun = True
            if call.reason is None:
                await self._run(call)
        except BaseException as error:  # a fault of ours must not cost a slot
            if not call.in_its_task():
                raise
            fault = error
        if not call.abandoned:
            self.finish(slot, call, fault)
            self._on_over(slot)

    async def _run(self, call: ChunkAttempt) -> None:
        """Run a call to its end. Raises only by a fault of ours, or when the event loop is gone."""
        task = call.handler
        if task is None:
            for member in call.members:
                self.settle(member, RESERVED)  # it was taken off the App since they were claimed
            return
        self.executor.begin_chunk(call)
        members = [each for each in call.members if self._prepare(each, task)]
        chain = self.executor.chain
        if members and chain is None:
            await self.call_handler(call, task, members)
        elif members and chain is not None:
            await ChunkLayers(self, chain, call, task, members).run()

    def finish(self, slot: Slot, call: ChunkAttempt, fault: BaseException | None = None) -> None:
        """The call is over, or is given up: settle what has no outcome, and free the slot."""
        slot.attempt = None
        self._collect()
        if fault is not None:
            with contextlib.suppress(Exception):  # an error may raise when it is formatted
                log.critical(
                    "A chunk of %d jobs (%s) broke its slot, which goes on with the next job",
                    len(call.members),
                    call.job.task,
                    exc_info=fault,
                )
        with call.guard:  # from here on no thread gives an answer
            open_ones = [each for each in call.members if not each.over]
            call.unanswered()
            for member in open_ones:
                member.over = True
        for member in open_ones:
            self._record(member, self._last_outcome(member, fault))
        call.over = True
        self.chunks.call_over()
        self.executor.end_chunk(call)

    def _last_outcome(self, member: ChunkMember, fault: BaseException | None) -> Outcome | None:
        task = member.call.handler
        if member.answer is not None and task is not None:
            return self.outcome_of(member, task, member.answer)  # its middleware does not end
        if fault is None or member.reason is not None:
            return self.executor.interrupted(member)
        return outcome_of_fault(member.job, None, fault)

    def cancel_waiting(self, job_id: str, token: int) -> bool:
        """Cancel a job that waits for its chunk to start. Return whether there is one."""
        job = self.chunks.remove(job_id, token)
        if job is None:
            return False
        now = self.deadlines.now()
        self.recorder.record(Attempt(job, now), CANCELLED_BEFORE_START, now)
        return True

    def _prepare(self, member: ChunkMember, task: Task[..., Any]) -> bool:
        """Make what the handler sees of a job. Return False if it has ended without."""
        job = member.job
        if self.executor.was_cancelled_before_start(job):
            self.settle(member, CANCELLED_BEFORE_START)
            return False
        try:
            arguments = arguments_of(job, task)
        except Exception as error:
            self.settle(member, self.executor.outcome_of_raised(member, task, error))
            return False
        member.seen_as = WorkerChunkJob(member, arguments, self._context_of, self.answered)
        return True

    def _context_of(self, member: ChunkMember) -> JobContext:
        return self.executor.context_class(member, self.executor.services)

    async def call_handler(
        self, call: ChunkAttempt, task: Task[..., Any], members: Sequence[ChunkMember]
    ) -> None:
        """Call the handler for these jobs, and give each of them its answer."""
        chunk = WorkerChunk(call, [each.seen_as for each in members])
        results: Sequence[Any] = ()
        failed: BaseException | None = None
        try:
            if task.kind == "async":
                value = await task.signature.call(chunk, None)
            else:
                value = await self.executor.threads.run(
                    call, lambda: task.signature.call(chunk, None)
                )
                if inspect.isawaitable(value):
                    value = await awaited(call, value)
            results = _results(task, value, len(members))
        except BaseException as error:  # also SystemExit must not end the worker
            if not call.in_its_task():
                raise
            failed = error
        self._collect()
        stopped = call.cooperative and call.noticed and call.reason is not None
        unanswered = set(call.unanswered())
        for place, member in enumerate(members):
            if member not in unanswered:
                continue
            # A thread that was told to stop, and returned, has not done what it was to do.
            member.noticed = member.noticed or stopped
            answer = ChunkAnswer(error=failed) if failed is not None else _answer(results[place])
            if member.give(answer):
                self.answered(member)

    def answered(self, member: ChunkMember) -> None:
        """A job has its answer. From any thread."""
        if threading.get_ident() == self._loop_thread:
            self._resolve(member)
            return
        self._answered.append(member)
        # Waking the loop is expensive; one wake-up collects all that end before it.
        if not self._wakeup_pending:
            self._wakeup_pending = True
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._wakeup_pending = False  # first: what ends from now on wakes the loop again
        while self._answered:
            self._resolve(self._answered.popleft())

    def _resolve(self, member: ChunkMember) -> None:
        """Settle a job by its answer, or hand that to the middleware around the job."""
        answer, task = member.answer, member.call.handler
        if member.over or answer is None or task is None:
            return
        if member.waiter is None:
            self.settle(member, self.outcome_of(member, task, answer))
        elif not member.waiter.done():
            member.waiter.set_result(answer)

    def outcome_of(
        self, member: ChunkMember, task: Task[..., Any], answer: ChunkAnswer
    ) -> Outcome | None:
        """Return what an answer means for its job; None if its lease is lost."""
        if answer.error is not None:
            return self.executor.outcome_of_raised(member, task, answer.error)
        return self.executor.outcome_of_returned(member, task, answer.value)

    def settle(self, member: ChunkMember, outcome: Outcome | None) -> None:
        """Record the outcome of a job, unless it has one."""
        if not member.over:
            member.over = True
            self._record(member, outcome)

    def _record(self, member: ChunkMember, outcome: Outcome | None) -> None:
        if member.reason is Reason.LOST:
            outcome = None
        self.chunks.member_over()
        self.executor.end_member(member, outcome)
        try:
            self.recorder.record(member, outcome, self.deadlines.now())
        except Exception:  # the caller has other attempts to end
            log.critical("The outcome of job %s got lost", member.job.id, exc_info=True)


def _results(task: Task[..., Any], value: Any, count: int) -> Sequence[Any]:
    """Return what a handler returned, one for each job."""
    if value is None:
        return [None] * count
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise NotRetryable(
            f'task "{task.name}" returned {type(value).__name__} for a chunk; return a list with '
            "one result for each job, in order, or nothing"
        )
    if len(value) != count:
        raise NotRetryable(
            f'task "{task.name}" returned {len(value)} results for a chunk of {count} jobs; return '
            "one for each, in order; None for a job that has an outcome already"
        )
    return value


def _answer(result: Any) -> ChunkAnswer:
    return ChunkAnswer(error=result) if isinstance(result, BaseException) else ChunkAnswer(result)
