"""From two reads of a job to every change of status between them. No I/O.

No poll is frequent enough to see every fast job running. But a job has its past: its token grows
with each claim, and its log has a line for each attempt that did not complete.
"""

from __future__ import annotations

import zlib
from datetime import timedelta

import msgspec

from headrace.model.job import Job
from headrace.model.outcome import AttemptEntry
from headrace.model.status import State, Status

# Of a job that was claimed very often between two reads, only the last attempts are reported.
MOST_ATTEMPTS = 50
# A retry without a delay is claimed again sooner than this; one with a delay never is.
SHORTEST_DELAY = timedelta(seconds=0.05)
_WAITED = ("retry", "snoozed")


class JobFingerprint(msgspec.Struct, frozen=True):
    """What is remembered of a job. `checksum` covers all that people see besides the status."""

    token: int
    status: Status
    checksum: int

    @property
    def text(self) -> str:
        """Return it as text, for the id of an event."""
        return f"{self.token}.{self.status.value}.{self.checksum:08x}"


def fingerprint(job: Job) -> JobFingerprint:
    """Return what to remember of a job."""
    visible = (
        f"{job.state}|{job.attempt}|{job.stage}|{job.progress}|{job.message}"
        f"|{job.cancel_requested}|{job.run_at.timestamp()}"
    )
    return JobFingerprint(job.token, job.status, zlib.crc32(visible.encode("utf-8", "replace")))


def parse_fingerprint(text: str) -> JobFingerprint | None:
    """Return the fingerprint in a text; None if it is not one of ours."""
    try:
        token, status, checksum = text.split(".")
        seen = JobFingerprint(int(token), Status(status), int(checksum, 16))
    except ValueError:
        return None
    return seen if seen.text == text else None


def changes_since(seen: JobFingerprint, job: Job) -> list[Job]:
    """Return the job as it was after each change since then; the last one as it is now."""
    if job.token < seen.token or fingerprint(job) == seen:
        return []
    past = {entry.token: entry for entry in job.attempts} if job.log else {}
    path: list[Job] = []
    if job.token == seen.token:
        if seen.status is Status.RUNNING and job.status is Status.PENDING:
            path += _waited(job, past.get(job.token))
        return [*path, job]
    if seen.status is Status.RUNNING:
        path += _again(job, past, seen.token)
    elif seen.status is not Status.PENDING:
        path.append(_as_pending(job, seen.token))
    first = max(seen.token + 1, job.token - MOST_ATTEMPTS + 1)
    for token in range(first, job.token):
        path += [_as_running(job, token, past.get(token)), *_again(job, past, token)]
    if job.status is Status.RUNNING:
        return [*path, job]
    path.append(_as_running(job, job.token, past.get(job.token)))
    if job.status is Status.PENDING:
        path += _waited(job, past.get(job.token))
    return [*path, job]


def changes_since_creation(job: Job) -> list[Job]:
    """Return the job as it was after each change since it was enqueued."""
    if job.token == 0:
        return [job]
    created = _as_pending(job, 0)
    return [created, *changes_since(fingerprint(created), job)]


def _again(job: Job, past: dict[int, AttemptEntry], token: int) -> list[Job]:
    """How an attempt became the next one: through a wait, or at once."""
    entry, after = past.get(token), past.get(token + 1)
    last = token + 1 == job.token
    started = job.started_at if last else None if after is None else after.started_at
    waited = (
        entry is not None
        and entry.outcome in _WAITED
        and (started is None or started - entry.ended_at >= SHORTEST_DELAY)
    )
    pending = _as_pending(job, token)
    return [_as_scheduled(job, entry), pending] if waited and entry else [pending]


def _waited(job: Job, entry: AttemptEntry | None) -> list[Job]:
    """The wait that a job has behind it that is pending again."""
    if entry is None or entry.outcome not in _WAITED:
        return []
    return [_as_scheduled(job, entry)] if job.run_at - entry.ended_at >= SHORTEST_DELAY else []


def _as_pending(job: Job, token: int) -> Job:
    return _before(job, State.READY, token)


def _as_running(job: Job, token: int, entry: AttemptEntry | None) -> Job:
    if entry is not None:
        return msgspec.structs.replace(
            _before(job, State.RUNNING, token),
            attempt=entry.attempt,
            started_at=entry.started_at,
            worker=entry.worker,
        )
    last = token == job.token
    return msgspec.structs.replace(
        _before(job, State.RUNNING, token),
        started_at=job.started_at if last else None,
        worker=job.worker if last else None,
    )


def _as_scheduled(job: Job, entry: AttemptEntry) -> Job:
    return msgspec.structs.replace(
        _before(job, State.SCHEDULED, entry.token),
        attempt=entry.attempt,
        error_type=entry.failure.type if entry.failure else None,
        error=entry.failure.message if entry.failure else None,
    )


def _before(job: Job, state: State, token: int) -> Job:
    """The job in an earlier state, without what only came later."""
    return msgspec.structs.replace(
        job,
        state=state,
        token=token,
        started_at=None,
        completed_at=None,
        worker=None,
        stage=None,
        progress=0.0,
        message=None,
        error_type=None,
        error=None,
        result_json=None,
        cancel_requested=False,
    )
