"""The executor: runs one attempt and returns its outcome."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from headrace.clock import Clock
from headrace.errors import MissingEncryptionKey, PayloadTooLarge, SealRefused
from headrace.model.job import ClaimedJob
from headrace.model.outcome import RESERVED, Cancelled, Completed, Failed, Outcome
from headrace.orchestrator.middleware import Chain
from headrace.orchestrator.running.attempt import (
    Attempt,
    Reason,
    UnreadableArguments,
    arguments_of,
    monotonic,
)
from headrace.orchestrator.running.context import JobContext, Services
from headrace.orchestrator.running.outcomes import (
    DEFAULT_POLICY,
    outcome_of_bad_arguments,
    outcome_of_caught_suspension,
    outcome_of_error,
    outcome_of_fault,
    outcome_of_interruption,
)
from headrace.orchestrator.running.thread_chain import AwaitableResult
from headrace.orchestrator.running.threads import Threads
from headrace.orchestrator.settling.attempt_log import describe_failure
from headrace.task import Task
from headrace.task.app_like import AppLike
from headrace.task.codec import encode_exact

if TYPE_CHECKING:
    from headrace.orchestrator.isolation import ProcessPool
    from headrace.orchestrator.running.chunk_attempt import ChunkAttempt, ChunkMember

EMPTY_COMPLETED = Completed()
CANCELLED_BEFORE_START = Cancelled("cancelled before it started")


@dataclass(kw_only=True, slots=True, eq=False)
class Executor:
    """Runs attempts: `async def` on the loop, `def` in a thread, isolated ones in a process."""

    context_class: ClassVar[type[JobContext]] = JobContext
    tasks: Mapping[str, Task[..., Any]]
    services: Services
    threads: Threads
    processes: Callable[[], ProcessPool]
    clock: Clock
    chain: Chain | None
    built_in: Callable[[str], Task[..., Any] | None]
    # Returns the outcome of a job that this worker has not the keys for; no attempt is spent.
    without_key: Callable[[ClaimedJob, MissingEncryptionKey | None], Outcome]
    # Jobs that were cancelled while they waited for a slot, with the token they had then.
    cancelled_before_start: dict[str, int] = field(default_factory=dict)

    async def run(self, attempt: Attempt) -> Outcome | None:
        """Run one attempt to its end and return its outcome; None if its lease is lost.

        Never raises, whatever the handler does, except when the event loop is gone and its
        coroutine is closed.
        """
        job = attempt.job
        task = self.tasks.get(job.task) or self.built_in(job.task)
        if task is None:
            return RESERVED  # it was taken off the App since the job was claimed
        if self.was_cancelled_before_start(job):
            return CANCELLED_BEFORE_START
        if task.encrypted and self.services.sealing is None:
            return self.without_key(job, None)
        context: JobContext | None = None
        try:
            arguments = arguments_of(job, task)
            signature = task.signature
            if self.chain is None and task.kind == "async":
                context = (
                    self.context_class(attempt, self.services) if signature.takes_context else None
                )
                value = await signature.call(context, arguments)
            else:
                context = self.context_class(attempt, self.services)
                value = await self._with_middleware(attempt, task, context, arguments)
            outcome = self.outcome_of_returned(attempt, task, value)
        except BaseException as error:  # also SystemExit must not end the worker
            if not attempt.in_its_task():
                raise
            outcome = self.outcome_of_raised(attempt, task, error)
        return outcome if context is None else await self._after_stages(attempt, context, outcome)

    def forget_cancelled(self, held: Mapping[str, int]) -> None:
        """Forget cancelled jobs that no longer wait here: they have ended or were released."""
        for job_id, token in self.cancelled_before_start.copy().items():
            if held.get(job_id) != token:
                self.cancelled_before_start.pop(job_id, None)

    def thread_task(self, job: ClaimedJob) -> Task[..., Any] | None:
        """Return the task of a job that a thread can run by itself: a plain function without
        middleware.
        """
        if self.chain is not None:
            return None
        task = self.tasks.get(job.task)
        return task if task is not None and task.kind == "thread" else None

    def run_in_thread(
        self, attempt: Attempt, task: Task[..., Any]
    ) -> Outcome | AwaitableResult | None:
        """In a thread: run an attempt at a plain function to its end, as `run` does."""
        job = attempt.job
        if self.was_cancelled_before_start(job):
            return CANCELLED_BEFORE_START
        if attempt.reason is not None:
            return self.interrupted(attempt)
        if task.encrypted and self.services.sealing is None:
            return self.without_key(job, None)
        try:
            arguments = arguments_of(job, task)
            signature = task.signature
            context = (
                self.context_class(attempt, self.services) if signature.takes_context else None
            )
            value = signature.call(context, arguments)
            if value is not None and inspect.isawaitable(value):
                return AwaitableResult(value, context)
            return self.outcome_of_returned(attempt, task, value)
        except BaseException as error:  # whatever a handler raises is its job's failure
            return self.outcome_of_raised(attempt, task, error)

    async def finish_awaitable(
        self, attempt: Attempt, task: Task[..., Any], value: AwaitableResult
    ) -> Outcome | None:
        """Await what a plain function returned, and return the outcome."""
        try:
            outcome = self.outcome_of_returned(attempt, task, await awaited(attempt, value.value))
        except BaseException as error:  # as above
            if not attempt.in_its_task():
                raise
            outcome = self.outcome_of_raised(attempt, task, error)
        context = value.context
        return outcome if context is None else await self._after_stages(attempt, context, outcome)

    def interrupted(self, attempt: Attempt) -> Outcome | None:
        """Return the outcome of an attempt that was stopped before its handler began, or that is
        abandoned because its handler does not stop.
        """
        job = attempt.job
        try:
            task = self.tasks.get(job.task) or self.built_in(job.task)
            policy = DEFAULT_POLICY if task is None else task.policy
            return outcome_of_interruption(job, policy, attempt.reason or Reason.STOPPED)
        except BaseException as fault:  # the caller has other attempts to stop
            return outcome_of_fault(job, None, fault)

    # --- told about chunks by `ChunkCalls`: see `ObservedExecutor`

    def begin_chunk(self, call: ChunkAttempt) -> None:
        """A call begins, on the event loop, in a context of its own."""

    def enter_member(self, member: ChunkMember) -> None:
        """The layers around one job begin, in a context of their own."""

    def end_member(self, member: ChunkMember, outcome: Outcome | None) -> None:
        """A job has its outcome."""

    def end_chunk(self, call: ChunkAttempt) -> None:
        """The call has ended, or was given up."""

    async def _after_stages(
        self, attempt: Attempt, context: JobContext, outcome: Outcome | None
    ) -> Outcome | None:
        """Return the outcome once the stages are over that the handler has left running. Otherwise
        the next run would run them a second time, at the same time.
        """
        if "running_stages" in context.__dict__ and context.running_stages.any:
            await context.running_stages.end(wait=attempt.reason is None)
            # It may have been stopped meanwhile, or its lease may be lost.
            if attempt.reason is Reason.LOST or (
                attempt.reason is not None and not isinstance(outcome, Completed)
            ):
                return self.interrupted(attempt)
        return outcome

    async def _with_middleware(
        self, attempt: Attempt, task: Task[..., Any], context: JobContext, arguments: Any
    ) -> Any:
        if self.chain is None:
            return await self._invoke(attempt, task, context, arguments)
        return await self.chain(
            lambda: self._invoke(attempt, task, context, arguments), attempt.job, context
        )

    async def _invoke(
        self, attempt: Attempt, task: Task[..., Any], context: JobContext, arguments: Any
    ) -> Any:
        match task.kind:
            case "async":
                return await task.signature.call(context, arguments)
            case "thread":
                value = await self.threads.run(
                    attempt, lambda: task.signature.call(context, arguments)
                )
                return await awaited(attempt, value) if inspect.isawaitable(value) else value
            case "process":
                # The child has encoded its result; it is not decoded here.
                return msgspec.Raw(
                    await self.processes().run(
                        task,
                        attempt.job,
                        context,
                        lambda counts: attempt.count_from(self._now() if counts else None),
                    )
                )

    def _now(self) -> float:
        return monotonic() + self.clock.offset

    def was_cancelled_before_start(self, job: ClaimedJob) -> bool:
        """Return whether a job was cancelled before its attempt began."""
        return job.cancel_requested or (
            bool(self.cancelled_before_start)
            and self.cancelled_before_start.pop(job.id, None) == job.token
        )

    def outcome_of_returned(
        self, attempt: Attempt, task: Task[..., Any], value: Any
    ) -> Outcome | None:
        """Return the outcome of an attempt whose handler has returned this."""
        if attempt.noticed and self._stopped_early(attempt):
            return self._outcome_of_stop(attempt, task)
        return EMPTY_COMPLETED if value is None else self._completed(attempt.job, value)

    def _stopped_early(self, attempt: Attempt) -> bool:
        """Return True if the handler returned after a stop request, or swallowed `Suspended`."""
        return attempt.suspended or (attempt.cooperative and attempt.reason is not None)

    def _outcome_of_stop(self, attempt: Attempt, task: Task[..., Any]) -> Outcome | None:
        if attempt.reason is not None:
            # Returning is the only way for a thread to stop.
            return outcome_of_interruption(attempt.job, task.policy, attempt.reason)
        return outcome_of_caught_suspension(attempt.job)

    def _completed(self, job: ClaimedJob, value: Any) -> Outcome:
        try:
            result = encode_exact(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return Failed(
                describe_failure(
                    TypeError(
                        f'task "{job.task}" returned what cannot be kept as its result: {error}; '
                        "return plain data"
                    )
                )
            )
        limit = self.services.payload_limit
        if len(result) > limit:
            return Failed(
                describe_failure(
                    PayloadTooLarge(
                        f'task "{job.task}": the result takes {len(result):,} bytes, the limit is '
                        f"{limit:,}; keep it as an artifact and return a reference, or raise "
                        "HEADRACE_PAYLOAD_LIMIT"
                    )
                )
            )
        if job.sealed and self.services.sealing is not None:
            result = self.services.sealing.result(job.id, result)
        return Completed(result)

    def outcome_of_raised(
        self, attempt: Attempt, task: Task[..., Any], error: BaseException
    ) -> Outcome | None:
        """Return the outcome of an attempt whose handler has raised this."""
        try:
            if attempt.reason is not None:
                # It was stopped; which error that led to does not matter.
                return outcome_of_interruption(attempt.job, task.policy, attempt.reason)
            if isinstance(error, MissingEncryptionKey) and (
                # A plain handler that cannot seal what it enqueues has failed like any other.
                task.encrypted or attempt.job.sealed or error.key is not None
            ):
                return self.without_key(attempt.job, error)
            if isinstance(error, SealRefused):
                # No attempt could open it. What it says is ours, and nothing of the value.
                return Failed(describe_failure(error), counts=False)
            if isinstance(error, UnreadableArguments):
                outcome = outcome_of_bad_arguments(attempt.job, error.reason)
            else:
                if isinstance(error, asyncio.CancelledError):
                    error = _explained(error)
                outcome = outcome_of_error(attempt.job, task.policy, error, now=self.clock.now())
        except BaseException as fault:  # an error may raise when it is formatted
            outcome = outcome_of_fault(attempt.job, error, fault)
        return self.sealed(attempt.job, outcome)

    def sealed(self, job: ClaimedJob, outcome: Outcome) -> Outcome:
        """Return an outcome with the texts of its failure sealed, if those of its job are."""
        if not job.sealed or self.services.sealing is None:
            return outcome
        return self.services.sealing.outcome(job.id, outcome)


async def awaited(attempt: Attempt, value: Awaitable[Any]) -> Any:
    """Await what a plain function returned. It has left its thread, so it can be cancelled."""
    attempt.cooperative = False
    if attempt.reason is not None:
        if inspect.iscoroutine(value):
            value.close()
        raise asyncio.CancelledError
    return await value


def _explained(error: asyncio.CancelledError) -> BaseException:
    """The job was not cancelled: something that the handler awaited was."""
    if not error.args:
        error.args = ("something that the handler awaited was cancelled",)
    return error


def executor_kind(host: AppLike) -> type[Executor]:
    """Return what runs attempts: one that notes which job runs only where somebody asks for it."""
    if host.tracing is None and host.settings.log_format != "json":
        return Executor
    from headrace.orchestrator.running.observed import ObservedExecutor  # noqa: PLC0415 - optional

    return ObservedExecutor
