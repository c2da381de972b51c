"""Jobs, turns and files as the API returns them. No I/O."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headrace import Job, Status
from headrace_speech.script import Script
from headrace_speech.store.records import AudioRow


class Accepted(msgspec.Struct, kw_only=True):
    """A script that was handed in."""

    job_id: str
    status: str


class JobView(msgspec.Struct, kw_only=True):
    """A job as the API returns it."""

    job_id: str
    status: str
    retry_count: int
    error_message: str | None
    audio_file_id: str | None
    """None until it has completed."""
    user: str
    provider: str
    title: str
    turns: int
    progress: float
    message: str | None
    seconds: float | None
    created_at: datetime | None
    completed_at: datetime | None


class TurnView(msgspec.Struct, kw_only=True):
    """A turn, which can be heard as soon as it is spoken."""

    turn: int
    role: str
    text: str
    voice: str
    spoken: bool
    seconds: float | None


class AudioView(msgspec.Struct, kw_only=True):
    """A file as the API returns it."""

    audio_file_id: str
    job_id: str
    user: str
    provider: str
    title: str
    path: str
    media_type: str
    seconds: float
    bytes: int
    checksum: str
    turns: int
    created_at: datetime


def view_of(job: Job, row: AudioRow | None) -> JobView:
    """Return a job as the API does."""
    completed = job.status == Status.COMPLETED
    script = script_of(job)
    return JobView(
        job_id=job.id,
        status=job.status.value,
        retry_count=max(job.attempt - 1, 0),
        error_message=None if completed else job.error,
        audio_file_id=row.audio_file_id if completed and row is not None else None,
        user=str(job.args.get("user", "")),
        provider=script.provider,
        title=script.title,
        turns=len(script.turns),
        progress=100.0 if completed else float(job.progress or 0),
        message=job.message,
        seconds=row.seconds if completed and row is not None else None,
        created_at=job.created_at,
        completed_at=job.completed_at,
    )


def view_of_row(row: AudioRow) -> JobView:
    """Return a job that is no longer in the history, of which only its file is left."""
    return JobView(
        job_id=row.job_id,
        status=Status.COMPLETED.value,
        retry_count=row.retry_count,
        error_message=None,
        audio_file_id=row.audio_file_id,
        user=row.user,
        provider=row.provider,
        title=row.title,
        turns=row.turns,
        progress=100.0,
        message=None,
        seconds=row.seconds,
        created_at=None,
        completed_at=row.created_at,
    )


def audio_view(row: AudioRow) -> AudioView:
    """Return a file as the API does."""
    return AudioView(
        audio_file_id=row.audio_file_id,
        job_id=row.job_id,
        user=row.user,
        provider=row.provider,
        title=row.title,
        path=row.path,
        media_type=row.media_type,
        seconds=row.seconds,
        bytes=row.bytes,
        checksum=row.checksum,
        turns=row.turns,
        created_at=row.created_at,
    )


def script_of(job: Job) -> Script:
    """Return the script of a job; an empty one if somebody has enqueued something else."""
    try:
        return msgspec.convert(job.args.get("script"), Script)
    except msgspec.ValidationError:
        return Script(provider="", turns=[], voice_assignments={})
