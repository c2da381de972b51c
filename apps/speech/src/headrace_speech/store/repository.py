"""Enters, reads and deletes audio files. Each write is one transaction.

Tokens grow with each attempt at a job. A write with a lower token than the stored one belongs to an
attempt that was given up, and changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from time import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headrace import InvalidInput
from headrace_speech.store.records import AudioFilter, AudioPage, AudioRow, Stored
from headrace_speech.store.tables import AudioFile, DeletedJob, table_of

FILES = table_of(AudioFile)
DELETED = table_of(DeletedJob)

_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_COLUMNS = {"user": "user_name"}


class AudioRepository:
    """The audio files of one database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def enter(self, row: AudioRow) -> Stored:
        """Write the row of a file, unless its job was deleted or a later attempt has written."""
        async with self._writing(row.job_id) as connection:
            if await connection.scalar(
                sa.select(DELETED.c.job_id).where(DELETED.c.job_id == row.job_id)
            ):
                return Stored.DELETED
            present = await _read(connection, FILES.c.job_id == row.job_id)
            if present is not None and present.token > row.token:
                return Stored.STALE
            if present is not None:
                await connection.execute(FILES.delete().where(FILES.c.job_id == row.job_id))
            await connection.execute(FILES.insert().values(**_values(row)))
        return Stored.STORED

    async def delete(self, job_id: str) -> AudioRow | None:
        """Delete the row of a job, whether there is one or not: what the job still makes is not
        entered. Return what was there.
        """
        async with self._writing(job_id) as connection:
            row = await _read(connection, FILES.c.job_id == job_id)
            await connection.execute(FILES.delete().where(FILES.c.job_id == job_id))
            known = await connection.execute(
                DELETED.update().where(DELETED.c.job_id == job_id).values(deleted_at=time())
            )
            if not known.rowcount:
                await connection.execute(DELETED.insert().values(job_id=job_id, deleted_at=time()))
        return row

    async def get(self, audio_file_id: str) -> AudioRow | None:
        """Return a file; None if there is none."""
        async with self._engine.connect() as connection:
            return await _read(connection, FILES.c.audio_file_id == audio_file_id)

    async def of_job(self, job_id: str) -> AudioRow | None:
        """Return the file of a job; None if there is none."""
        async with self._engine.connect() as connection:
            return await _read(connection, FILES.c.job_id == job_id)

    async def of_jobs(self, job_ids: Sequence[str]) -> dict[str, AudioRow]:
        """Return the files of jobs, by job."""
        query = sa.select(FILES).where(FILES.c.job_id.in_(job_ids))
        async with self._engine.connect() as connection:
            rows = [_row(each) for each in (await connection.execute(query)).mappings()]
        return {row.job_id: row for row in rows}

    async def deleted(self, job_ids: Iterable[str]) -> set[str]:
        """Return which of these jobs were deleted."""
        query = sa.select(DELETED.c.job_id).where(DELETED.c.job_id.in_(list(job_ids)))
        async with self._engine.connect() as connection:
            return set(await connection.scalars(query))

    async def artifacts(self, artifacts: Sequence[str]) -> set[str]:
        """Return which of these files of jobs have a row."""
        query = sa.select(FILES.c.artifact).where(FILES.c.artifact.in_(artifacts))
        async with self._engine.connect() as connection:
            return set(await connection.scalars(query))

    async def deleted_before(self, moment: float, limit: int) -> list[str]:
        """Return jobs that were deleted before a moment."""
        query = sa.select(DELETED.c.job_id).where(DELETED.c.deleted_at < moment)
        async with self._engine.connect() as connection:
            found = await connection.scalars(query.order_by(DELETED.c.deleted_at).limit(limit))
            return list(found)

    async def forget(self, job_ids: Sequence[str]) -> None:
        """Forget that jobs were deleted, because they are gone."""
        async with self._engine.begin() as connection:
            await connection.execute(DELETED.delete().where(DELETED.c.job_id.in_(job_ids)))

    async def list(self, wanted: AudioFilter, *, limit: int, after: str | None) -> AudioPage:
        """Return files, the newest first."""
        query = sa.select(FILES)
        if wanted.user is not None:
            query = query.where(FILES.c.user_name == wanted.user)
        if wanted.provider is not None:
            query = query.where(FILES.c.provider == wanted.provider)
        if wanted.created_after is not None:
            query = query.where(FILES.c.created_at >= wanted.created_after.timestamp())
        if wanted.created_before is not None:
            query = query.where(FILES.c.created_at < wanted.created_before.timestamp())
        if after is not None:
            place = sa.tuple_(FILES.c.created_at, FILES.c.audio_file_id)
            query = query.where(place < _place(after))
        query = query.order_by(FILES.c.created_at.desc(), FILES.c.audio_file_id.desc())
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.limit(limit + 1))).mappings().all()
        last = rows[limit - 1] if len(rows) > limit else None
        following = None if last is None else f"{last['created_at']!r}~{last['audio_file_id']}"
        return AudioPage([_row(row) for row in rows[:limit]], following)

    @asynccontextmanager
    async def _writing(self, job_id: str) -> AsyncIterator[AsyncConnection]:
        """A transaction beside which nobody else writes what belongs to this job."""
        async with self._engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                # The driver would begin one that only reads, which cannot always become a writer.
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                if connection.dialect.name == "postgresql":
                    await connection.execute(_LOCK, {"name": f"headrace_speech {job_id}"})
                yield connection
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise


async def _read(connection: AsyncConnection, condition: sa.ColumnElement[bool]) -> AudioRow | None:
    row = (await connection.execute(sa.select(FILES).where(condition))).mappings().first()
    return None if row is None else _row(row)


def _row(row: Any) -> AudioRow:
    names = {column: name for name, column in _COLUMNS.items()}
    values = {names.get(str(key), str(key)): value for key, value in row.items()}
    values["created_at"] = datetime.fromtimestamp(values["created_at"], UTC)
    return AudioRow(**values)


def _values(row: AudioRow) -> dict[str, Any]:
    values = {_COLUMNS.get(name, name): value for name, value in asdict(row).items()}
    return values | {"created_at": row.created_at.timestamp()}


def _place(after: str) -> sa.Tuple:
    created, _, audio_file_id = after.partition("~")
    try:
        return sa.tuple_(sa.literal(float(created)), sa.literal(audio_file_id))
    except ValueError:
        raise InvalidInput(f"cursor is {after[:60]!r}; use the value of the page before") from None
