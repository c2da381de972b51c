"""Plain data about audio files, as the repository takes and returns it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Stored(StrEnum):
    """What became of a file that was to be entered.

    `STALE`: a later attempt has entered one. `DELETED`: somebody has deleted the job meanwhile.
    """

    STORED = "stored"
    STALE = "stale"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioRow:
    """An audio file."""

    audio_file_id: str
    job_id: str
    user: str
    provider: str
    title: str
    path: str
    artifact: str
    media_type: str
    seconds: float
    bytes: int
    checksum: str
    turns: int
    retry_count: int
    token: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFilter:
    """Which files to list; empty means all."""

    user: str | None = None
    provider: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class AudioPage:
    """Some files, the newest first. `next` is given to the next call; None at the end."""

    files: list[AudioRow]
    next: str | None
