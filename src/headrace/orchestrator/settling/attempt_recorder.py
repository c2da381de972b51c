"""The books: what became of each attempt is counted, logged, and handed in to be settled."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from headrace.clock import Clock
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Failed, Outcome, Retry, Settlement, TimedOut
from headrace.orchestrator.claiming.dispatcher import Dispatcher
from headrace.orchestrator.running.attempt import Attempt
from headrace.orchestrator.running.outcomes import outcome_of_silence
from headrace.orchestrator.settling.attempt_log import log_entry, outcome_name
from headrace.orchestrator.settling.attempt_writes import AttemptWriter
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.worker")


class AttemptRecorder:
    """Where slots write down how attempts ended."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        writer: AttemptWriter,
        clock: Clock,
        telemetry: Telemetry,
        worker_name: str,
    ) -> None:
        self.dispatcher = dispatcher
        self.writer = writer
        self.clock = clock
        self.telemetry = telemetry
        self.worker_name = worker_name

    def record(self, attempt: Attempt, outcome: Outcome | None, now: float) -> None:
        """An attempt has ended. None: its lease is lost, and there is nothing to say.

        The outcome is handed in whatever goes wrong with what is counted and logged about it.
        """
        job = attempt.job
        settlement: Settlement | None = None
        try:
            seconds = now - attempt.started
            counters = self.telemetry.of(job.task, job.queue)
            counters.wait.observe(job.wait)
            counters.run.observe(seconds)
            self.dispatcher.prefetch.observe_duration(seconds)
            if type(outcome) is Completed:
                counters.completed += 1
                settlement = Settlement(job.id, job.token, outcome)
            else:
                settlement = self._uncompleted(attempt, outcome, seconds)
                counters.count("lost" if outcome is None else outcome_name(outcome))
            pending = self.writer.pending
            if pending and (job.id, job.token) in pending:
                if settlement is None:
                    self.writer.discard(job)
                else:
                    self.writer.flush_before_settle = True
        except Exception:  # a logger of the program's own may raise as well
            if outcome is not None and settlement is None:
                settlement = Settlement(job.id, job.token, outcome)
            log.exception("The end of job %s (%s) could not be reported", job.id, job.task)
        self.dispatcher.finished(job, settlement, now - self.clock.offset)

    def settle_silent(self, job: ClaimedJob) -> Settlement:
        """An attempt has ended here, without an outcome, and the engine counts on one."""
        outcome = outcome_of_silence(job)
        log.error(
            "Job %s (%s): attempt %d ended without an outcome; it counts as lost",
            job.id,
            job.task,
            job.attempt,
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
        entry = log_entry(
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
            log.info("Job %s (%s): %s", job.id, job.task, outcome_name(outcome))
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
