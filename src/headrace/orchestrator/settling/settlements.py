"""Settlements: made of ended attempts, buffered, and sent to the engine.

None leaves the buffer before the engine has replied.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.engine.stored_text import one_line
from headrace.errors import EngineUnavailable, StorageFull
from headrace.model.fingerprint import fingerprint
from headrace.model.job import ClaimedJob
from headrace.model.outcome import (
    Completed,
    Failed,
    Failure,
    Outcome,
    Released,
    Reserved,
    Retry,
    Settlement,
    TimedOut,
)
from headrace.model.sealed import without_text
from headrace.model.views import Exchange
from headrace.orchestrator.claiming.prefetch import PrefetchLimit
from headrace.orchestrator.durable.followers import size_of
from headrace.orchestrator.running.attempt import Attempt
from headrace.orchestrator.running.outcomes import outcome_of_silence
from headrace.orchestrator.settling.attempt_log import log_entry, outcome_name
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.task.redact import Redactor
from headrace.telemetry import Telemetry
from headrace.tracing.current_job import about

log = logging.getLogger("headrace.worker")

BATCH = 600
BATCH_BYTES = 8 * 1_048_576
# An outcome that the engine cannot store is replaced by a failure after this many tries of its own,
# so that the job ends and others are not held up: soon if other outcomes were stored meanwhile,
# otherwise after minutes.
TRIES = 3
TRIES_WITHOUT_PROGRESS = 10
# Errors that none of the outcomes is to blame for.
UNAVAILABLE = (EngineUnavailable, StorageFull, asyncio.CancelledError)


class OutcomeSink(Protocol):
    """Takes outcomes to be settled: the dispatcher."""

    prefetch: PrefetchLimit

    def finished(self, job: ClaimedJob, settlement: Settlement | None, now: float) -> None:
        """Take the outcome of an attempt. None: its lease is lost, there is nothing to settle."""


@dataclass(kw_only=True, slots=True, eq=False)
class AttemptRecorder:
    """Where slots report how attempts ended."""

    sink: OutcomeSink
    writer: AttemptWriter
    clock: Clock
    telemetry: Telemetry
    worker_name: str

    def record(self, attempt: Attempt, outcome: Outcome | None, now: float) -> None:
        """Take the end of an attempt. None: its lease is lost, there is nothing to settle.

        The outcome is handed on even if counting or logging raises.
        """
        job = attempt.job
        settlement: Settlement | None = None
        try:
            seconds = now - attempt.started
            counters = self.telemetry.of(job.task, job.queue)
            counters.wait.observe(job.wait)
            counters.run.observe(seconds)
            self.sink.prefetch.observe_duration(seconds)
            if type(outcome) is Completed:
                counters.completed += 1
                settlement = Settlement(job.id, job.token, outcome)
                if attempt.followers is not None:
                    settlement = _with_followers(attempt, settlement)
            else:
                settlement = self._uncompleted(attempt, outcome, seconds)
                counters.count("lost" if outcome is None else outcome_name(outcome))
                settled = None if settlement is None else settlement.outcome
                if isinstance(settled, Retry | Failed | TimedOut):
                    error = settled.failure.type
                    counters.count_error((error, fingerprint(error, settled.failure.message)))
            pending = self.writer.pending
            if pending and (job.id, job.token) in pending:
                if settlement is None:
                    self.writer.discard(job)
                else:
                    self.writer.flush_before_settle = True
        except Exception:  # a logger of the program's own may raise as well
            if outcome is not None and settlement is None:
                settlement = _with_followers(attempt, Settlement(job.id, job.token, outcome))
            log.exception("The end of job %s (%s) could not be reported", job.id, job.task)
        self.sink.finished(job, settlement, now - self.clock.offset)

    def settle_silent(self, job: ClaimedJob) -> Settlement:
        """Return the outcome of an attempt that ended here without one, and that the engine still
        takes for running.
        """
        outcome = outcome_of_silence(job)
        log.error(
            "Job %s (%s): attempt %d ended without an outcome; it counts as lost",
            job.id,
            job.task,
            job.attempt,
            extra=about(job),
        )
        self.telemetry.of(job.task, job.queue).count(outcome_name(outcome))
        ended_at = datetime.fromtimestamp(self.clock.now(), UTC)
        entry = log_entry(job, outcome, worker=self.worker_name, started_at=None, ended_at=ended_at)
        return Settlement(job.id, job.token, outcome, entry)

    def _uncompleted(
        self, attempt: Attempt, outcome: Outcome | None, seconds: float
    ) -> Settlement | None:
        job = attempt.job
        if outcome is None:
            if attempt.followers is not None:
                attempt.followers.close(None)
            log.warning(
                "Job %s (%s, attempt %d) belongs to another worker now; this attempt's result "
                "was discarded",
                job.id,
                job.task,
                job.attempt,
                extra=about(job),
            )
            return None
        # Where anybody can read it, an encrypted job tells no more of its error than the type.
        stored = without_text(outcome) if job.sealed else outcome
        _log_outcome(job, stored, seconds)
        now = self.clock.now()
        entry = log_entry(
            job,
            outcome,
            worker=self.worker_name,
            started_at=datetime.fromtimestamp(now - seconds, UTC),
            ended_at=datetime.fromtimestamp(now, UTC),
        )
        return _with_followers(attempt, Settlement(job.id, job.token, stored, entry))


def _with_followers(attempt: Attempt, settlement: Settlement) -> Settlement:
    """Return the settlement with the jobs that its handler wants to follow from such an outcome."""
    if attempt.followers is None:
        return settlement
    follow = attempt.followers.close(settlement.outcome)
    return msgspec.structs.replace(settlement, follow=follow) if follow else settlement


# The fields that a server hides unless it is told others.
_redactor = Redactor()


def _log_outcome(job: ClaimedJob, outcome: Outcome, seconds: float) -> None:
    match outcome:
        case Retry(failure=failure, delay=delay):
            level, ended, then = logging.WARNING, "failed", f"; tried again in {delay:g} s"
        case Failed(failure=failure):
            level, ended, then = logging.ERROR, "failed", "; not tried again"
        case TimedOut(failure=failure):
            level, ended, then = logging.ERROR, "timed out", "; not tried again"
        case _:
            log.info("Job %s (%s): %s", job.id, job.task, outcome_name(outcome), extra=about(job))
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
        one_line(failure.type),
        one_line(_redactor.text(failure.message, job.args)),
        then,
        extra=about(job),
    )


class SettleBuffer:
    """Keeps outcomes until an exchange has taken them, and sends them again after an error.

    Tokens make that safe: an outcome that did arrive is refused the second time.
    """

    __slots__ = ("_limit", "_others_passed", "_suspects", "add", "pending")

    def __init__(self) -> None:
        self.pending: deque[Settlement] = deque()
        # Bound to the queue itself: it is called once for each job.
        self.add: Callable[[Settlement], None] = self.pending.append
        self._limit = BATCH
        self._suspects: dict[tuple[str, int], int] = {}
        self._others_passed = False

    def __len__(self) -> int:
        return len(self.pending)

    @property
    def isolating(self) -> bool:
        """Return whether an outcome may break its batch: claim nothing along with it."""
        return self._limit < BATCH and bool(self.pending)

    def releases(self) -> list[Settlement]:
        """Return the waiting outcomes of jobs that were never started."""
        return [each for each in self.pending if isinstance(each.outcome, Released | Reserved)]

    def take(self) -> list[Settlement]:
        """Remove the next batch, bounded in number and size. Follow by `sent` or `put_back`."""
        batch: list[Settlement] = []
        pending, size = self.pending, 0
        while pending and len(batch) < self._limit:
            settlement = pending[0]
            outcome = settlement.outcome
            if type(outcome) is Completed:
                size += len(outcome.result)
            if settlement.follow:
                size += sum(map(size_of, settlement.follow))
            if size > BATCH_BYTES and batch:
                break
            batch.append(pending.popleft())
        return batch

    def sent(self, batch: list[Settlement]) -> None:
        """The engine has replied to this batch."""
        if self._limit < BATCH:
            self._limit = min(self._limit * 2, BATCH)
            self._others_passed = True
            for settlement in batch:
                self._suspects.pop((settlement.job_id, settlement.token), None)

    def put_back(self, batch: list[Settlement], *, may_be_poisoned: bool) -> None:
        """The exchange raised. `may_be_poisoned`: the engine is there, one outcome may be to blame.

        Halving the batch finds it. It goes to the end of the queue, and the others pass.
        """
        if not may_be_poisoned or not batch:
            self.pending.extendleft(reversed(batch))
            return
        if self._limit == BATCH:
            self._others_passed = False
        self._limit = max(len(batch) // 2, 1)
        if len(batch) > 1:
            self.pending.extendleft(reversed(batch))
            return
        settlement = batch[0]
        key = (settlement.job_id, settlement.token)
        tries = self._suspects[key] = self._suspects.get(key, 0) + 1
        if tries >= (TRIES if self._others_passed else TRIES_WITHOUT_PROGRESS):
            settlement = self._replaced(settlement)
        self.pending.append(settlement)

    def _replaced(self, settlement: Settlement) -> Settlement:
        log.error(
            "The engine cannot record the outcome of job %s (%s); recording a failure instead",
            settlement.job_id,
            type(settlement.outcome).__name__,
        )
        failure = Failure(
            "SettleError",
            "the handler ended, but the engine could not record its outcome "
            f"({type(settlement.outcome).__name__}); see the worker's log",
        )
        return Settlement(settlement.job_id, settlement.token, Failed(failure))


class ExtraSettler:
    """Settles a full batch at once while an exchange is in flight; at most one batch at a time.

    An exchange waits for the engine to store outcomes and to find jobs, and the engine waits for
    the next one while this process reads the reply. The extra batch claims nothing, so no job can
    be claimed twice or get lost.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        buffer: SettleBuffer,
        on_reply: Callable[[Sequence[Settlement], Exchange], None],
    ) -> None:
        self.engine = engine
        self.buffer = buffer
        # False after a failure, until a regular exchange succeeds.
        self.enabled = True
        self._on_reply = on_reply
        self._task: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> bool:
        return self._task is not None

    def send(self) -> None:
        """Send the next batch, unless one is in flight or there has been an error."""
        if self._task is None and self.enabled and not self.buffer.isolating:
            self._task = asyncio.get_running_loop().create_task(self._send(self.buffer.take()))

    async def stop(self) -> None:
        """Cancel the batch in flight."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self, batch: list[Settlement]) -> None:
        try:
            reply = await self.engine.exchange(batch)
        except BaseException as error:
            # The next exchange takes these outcomes along, and reports the error if it persists.
            self.enabled = False
            self.buffer.put_back(batch, may_be_poisoned=not isinstance(error, UNAVAILABLE))
            if not isinstance(error, Exception):
                raise
            log.info("%d outcomes are sent again: %s", len(batch), error)
        else:
            self.buffer.sent(batch)
            self._on_reply(batch, reply)
        finally:
            self._task = None
