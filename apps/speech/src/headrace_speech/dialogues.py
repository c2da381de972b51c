"""Dialogues as callers see them: handed in, followed, heard, deleted."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from headrace import (
    Artifact,
    InvalidInput,
    Job,
    JobConflict,
    JobFilter,
    JobNotFound,
    Status,
)
from headrace_speech.providers.base import Voices
from headrace_speech.script import Script
from headrace_speech.service import TASK, TURNS_LAYER, SpeechService, turn_name
from headrace_speech.store.records import AudioFilter, AudioRow
from headrace_speech.views import (
    Accepted,
    AudioView,
    JobView,
    TurnView,
    audio_view,
    script_of,
    view_of,
    view_of_row,
)

LOCAL_USER = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueFilter:
    """Which jobs to list; empty means all."""

    status: Status | None = None
    user: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


class Dialogues:
    """What can be done with dialogues."""

    def __init__(self, service: SpeechService) -> None:
        self._service = service

    async def hand_in(self, script: Script, *, user: str = LOCAL_USER) -> Accepted:
        """Check a script and enqueue its job. Nothing is stored of one that is refused."""
        await self._service.check(script)
        args = {"user": user, "script": msgspec.to_builtins(script)}
        job = await self._service.app.enqueue(self._service.app.job(TASK, args, source="api"))
        return Accepted(job_id=job.id, status=job.status.value)

    async def get(self, job_id: str) -> JobView | None:
        """Return a job; None if there is none. Of one that is no longer in the history its file
        tells what it was.
        """
        row = await self._service.repository.of_job(job_id)
        job = await self._job(job_id)
        if job is not None:
            return view_of(job, row)
        return None if row is None else view_of_row(row)

    async def list(
        self, wanted: DialogueFilter, *, limit: int, after: str | None
    ) -> tuple[list[JobView], str | None]:
        """Return jobs, the newest first, and where the next page begins."""
        chosen = JobFilter(
            tasks=(TASK,),
            statuses=() if wanted.status is None else (wanted.status,),
            lane=None if wanted.user is None else f"user:{wanted.user}",
            created_after=wanted.created_after,
            created_before=wanted.created_before,
        )
        page = await self._service.app.list(chosen, cursor=after, limit=limit)
        ids = [job.id for job in page.jobs]
        gone = await self._service.repository.deleted(ids)
        rows = await self._service.repository.of_jobs(ids)
        found = [view_of(job, rows.get(job.id)) for job in page.jobs if job.id not in gone]
        return found, page.cursor

    async def turns(self, job_id: str) -> Sequence[TurnView] | None:
        """Return the turns of a job, and which of them can be heard; None if there is no job."""
        job = await self._job(job_id)
        if job is None:
            return None
        files = await self._files(job_id)
        script = script_of(job)
        return [
            TurnView(
                turn=place + 1,
                role=turn.role,
                text=turn.text,
                voice=script.voice_assignments.get(turn.role, ""),
                spoken=(file := files.get(turn_name(place))) is not None,
                seconds=None if file is None else float(file.metadata.get("seconds", 0)),
            )
            for place, turn in enumerate(script.turns)
        ]

    async def turn_file(self, job_id: str, turn: int) -> Artifact | None:
        """Return the file of a turn that is spoken; None if it is not, or there is none."""
        if await self._job(job_id) is None:
            return None
        return (await self._files(job_id)).get(turn_name(turn - 1))

    async def retry(self, job_id: str) -> JobView | None:
        """Hand in again what has failed; turns that were spoken are not spoken again. None if there
        is no such job. Raises `JobConflict` if it has not ended, or has completed.
        """
        job = await self._job(job_id)
        if job is None:
            return None
        if job.status == Status.COMPLETED or not job.status.final:
            raise JobConflict(f"job {job_id} is {job.status}; only one that failed is tried again")
        return view_of(await self._service.app.retry(job_id), None)

    async def delete(self, job_id: str) -> bool:
        """Delete a job with its file, and stop it if it has not ended; return whether there was
        one.
        """
        row = await self._service.repository.of_job(job_id)
        job = await self._job(job_id)
        if job is None and row is None:
            return False
        # First: what the job still makes is not entered from here on.
        row = await self._service.repository.delete(job_id)
        if job is not None and not job.status.final:
            with contextlib.suppress(JobNotFound, JobConflict, InvalidInput):
                await self._service.app.cancel(job_id, "it was deleted")
        if row is not None:
            await self._service.remove_file(row.artifact)
        return True

    async def audio(self, audio_file_id: str) -> AudioRow | None:
        """Return a file; None if there is none."""
        return await self._service.repository.get(audio_file_id)

    async def delete_audio(self, audio_file_id: str) -> bool:
        """Delete a file, and what its job shows of it; return whether there was one."""
        row = await self._service.repository.get(audio_file_id)
        return row is not None and await self.delete(row.job_id)

    async def audio_files(
        self, wanted: AudioFilter, *, limit: int, after: str | None
    ) -> tuple[Sequence[AudioView], str | None]:
        """Return files, the newest first, and where the next page begins."""
        page = await self._service.repository.list(wanted, limit=limit, after=after)
        return [audio_view(row) for row in page.files], page.next

    async def voices(self, provider: str) -> Voices:
        """Return the voices of a provider."""
        return await self._service.provider(provider).voices()

    async def content(self, audio_file_id: str) -> AsyncIterator[bytes]:
        """Yield a file. Raises `InvalidInput` if there is none."""
        row = await self.audio(audio_file_id)
        if row is None:
            raise InvalidInput(f"there is no audio file {audio_file_id}")
        stream = self._service.app.artifacts.stream(row.artifact, sha256=row.checksum)
        async for piece in stream:
            yield piece

    async def _files(self, job_id: str) -> dict[str, Artifact]:
        files = await self._service.app.artifacts.list(job_id)
        return {file.name: file for file in files if file.layer == TURNS_LAYER}

    async def _job(self, job_id: str) -> Job | None:
        """Return a job of ours that was not deleted."""
        try:
            job = await self._service.app.get(job_id)
        except (JobNotFound, InvalidInput):
            return None
        if job.task != TASK or await self._service.repository.deleted([job_id]):
            return None
        return job
