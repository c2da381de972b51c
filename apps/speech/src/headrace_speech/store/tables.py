"""Tables: the audio files, and the jobs whose audio was deleted.

In PostgreSQL they are in a schema of their own, which the connection's search path names.
"""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class SpeechBase(DeclarativeBase):
    """Base of the tables of this bundle."""


class AudioFile(SpeechBase):
    """A file that was made. It is there as long as its row."""

    __tablename__ = "audio_files"

    audio_file_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    job_id: Mapped[str] = mapped_column(sa.Text, unique=True)
    user: Mapped[str] = mapped_column("user_name", sa.Text)
    provider: Mapped[str] = mapped_column(sa.Text)
    title: Mapped[str] = mapped_column(sa.Text)
    path: Mapped[str] = mapped_column(sa.Text)
    """As callers see it: `storage/{provider}/{uuid}.mp3`."""
    artifact: Mapped[str] = mapped_column(sa.Text)
    """Where it is among the files of its job."""
    media_type: Mapped[str] = mapped_column(sa.Text)
    seconds: Mapped[float]
    bytes: Mapped[int] = mapped_column(sa.BigInteger)
    checksum: Mapped[str] = mapped_column(sa.Text)
    """SHA-256 in hexadecimal."""
    turns: Mapped[int]
    retry_count: Mapped[int]
    token: Mapped[int] = mapped_column(sa.BigInteger)
    """Of the attempt that wrote it; attempts with a lower one change nothing."""
    created_at: Mapped[float]

    __table_args__ = (
        sa.Index("audio_files_order", "created_at", "audio_file_id"),
        sa.Index("audio_files_user", "user_name", "created_at", "audio_file_id"),
    )


class DeletedJob(SpeechBase):
    """A job that was deleted: what it still makes is not stored."""

    __tablename__ = "deleted_jobs"

    job_id: Mapped[str] = mapped_column(sa.Text, primary_key=True)
    deleted_at: Mapped[float]


def table_of(model: type[SpeechBase]) -> sa.Table:
    """Return the table of a class, for statements."""
    return cast("sa.Table", cast("Any", model).__table__)
