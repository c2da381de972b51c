"""The executor of a worker that makes spans, or whose log lines are JSON.

Invariant: an attempt that has begun has one span, which ends with the outcome that is settled: also
that of a handler which does not stop and is abandoned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.model.job import ClaimedJob
from headrace.model.outcome import Failed, Outcome, Retry, TimedOut
from headrace.orchestrator.durable.spans import hidden
from headrace.orchestrator.running.attempt import Attempt
from headrace.orchestrator.running.chunk_attempt import ChunkAttempt, ChunkMember
from headrace.orchestrator.running.context import JobContext
from headrace.orchestrator.running.executor import Executor
from headrace.orchestrator.running.thread_chain import AwaitableResult
from headrace.orchestrator.settling.attempt_log import outcome_name
from headrace.task import Task
from headrace.tracing.current_job import CURRENT_JOB

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from headrace.tracing.tracer import Tracing


class ObservedContext(JobContext):
    """The context of an attempt that has a span."""

    @property
    def tracing(self) -> Tracing | None:  # type: ignore[override]
        return self._services.tracing


@dataclass(kw_only=True, eq=False)
class ObservedExecutor(Executor):
    """Runs attempts as an `Executor` does; log lines and spans inside know which they belong to."""

    context_class: ClassVar[type[JobContext]] = ObservedContext
    spans: dict[Attempt, Span] = field(default_factory=dict)

    async def run(self, attempt: Attempt) -> Outcome | None:
        # Every attempt has context variables of its own, so nothing has to be set back.
        CURRENT_JOB.set(attempt.job)
        tracing = self.services.tracing
        if tracing is None:
            return await super().run(attempt)
        self.spans[attempt] = tracing.begin_attempt(attempt.job)
        outcome: Outcome | None = None
        try:
            outcome = await super().run(attempt)
        finally:
            self._end(attempt, outcome)
        return outcome

    def interrupted(self, attempt: Attempt) -> Outcome | None:
        outcome = super().interrupted(attempt)
        if attempt.abandoned:
            self._end(attempt, outcome)
        return outcome

    def thread_task(self, job: ClaimedJob) -> Task[..., Any] | None:
        # A thread that goes from job to job by itself has no moment for the end of a span.
        return super().thread_task(job) if self.services.tracing is None else None

    def run_in_thread(
        self, attempt: Attempt, task: Task[..., Any]
    ) -> Outcome | AwaitableResult | None:
        CURRENT_JOB.set(attempt.job)
        return super().run_in_thread(attempt, task)

    # A chunk has a span of its own, in which its handler runs, beside those of its jobs.

    def begin_chunk(self, call: ChunkAttempt) -> None:
        tracing = self.services.tracing
        if tracing is not None:
            for member in call.members:
                self.spans[member] = tracing.begin_member(member.job)
            spans = [self.spans[member] for member in call.members]
            self.spans[call] = tracing.begin_chunk(call.job.task, spans)

    def enter_member(self, member: ChunkMember) -> None:
        CURRENT_JOB.set(member.job)
        tracing, span = self.services.tracing, self.spans.get(member)
        if tracing is not None and span is not None:
            tracing.enter(span)

    def end_member(self, member: ChunkMember, outcome: Outcome | None) -> None:
        self._end(member, outcome)

    def end_chunk(self, call: ChunkAttempt) -> None:
        span = self.spans.pop(call, None)
        if span is not None:
            span.end()

    def _end(self, attempt: Attempt, outcome: Outcome | None) -> None:
        span = self.spans.pop(attempt, None)
        tracing = self.services.tracing
        if span is None or tracing is None:
            return
        name = "lost" if outcome is None else outcome_name(outcome)
        failure = None
        if isinstance(outcome, Retry | Failed | TimedOut):
            failure = hidden(outcome.failure, attempt.job.args)
        tracing.end_attempt(span, name, failure)
