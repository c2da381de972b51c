"""The HTTP routes of the bundle, below `/speech`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from headrace import Artifact, InvalidSetting, Status
from headrace.bundles import File, Refusal, Request, Routes, Setup
from headrace_speech.dialogues import DialogueFilter, Dialogues
from headrace_speech.providers.base import Voices
from headrace_speech.script import Script, ScriptRefused, shown
from headrace_speech.service import AUDIO_LAYER, SpeechService
from headrace_speech.store.records import AudioFilter
from headrace_speech.views import Accepted, AudioView, JobView, TurnView, audio_view

LARGEST_SCRIPT = 2 * 1024 * 1024
T = TypeVar("T")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class JobsPage(msgspec.Struct, kw_only=True):
    """Some jobs, the newest first."""

    jobs: list[JobView]
    next: str | None


class AudioFilesPage(msgspec.Struct, kw_only=True):
    """Some files, the newest first."""

    audio_files: list[AudioView]
    next: str | None


class Turns(msgspec.Struct, kw_only=True):
    """The turns of a job, in order."""

    turns: list[TurnView]


def routes(setup: Setup) -> Routes:
    """Return the routes."""
    routes = Routes()
    service = SpeechService(setup)
    dialogues = Dialogues(service)
    _add_jobs(routes, dialogues)
    _add_audio(routes, dialogues)

    @routes.get("/voices", scope="read")
    async def voices(provider: str = "local", language: str | None = None) -> Voices:
        """List the voices of a provider, also of one language alone, such as `ko`."""
        try:
            found = await dialogues.voices(provider)
        except (ScriptRefused, InvalidSetting) as error:
            raise _refusal(error) from None
        if not language:
            return found
        wanted = [each for each in found.voices if _speaks(each.language, language)]
        return Voices(provider=found.provider, voices=tuple(wanted), variants=found.variants)

    @routes.get("/providers", scope="read")
    async def providers() -> dict[str, Any]:
        """List who can speak, and how much may be asked at once."""
        settings = service.settings
        return {
            "providers": list(service.providers),
            "at_once": settings.at_once,
            "most_turns": settings.most_turns,
            "most_characters": settings.most_characters,
            "turn_characters": settings.turn_characters,
        }

    return routes


def _add_jobs(routes: Routes, dialogues: Dialogues) -> None:
    @routes.post("/jobs", scope="write", status=202, action="dialogue.add", limit=LARGEST_SCRIPT)
    async def hand_in(script: Script, request: Request) -> Accepted:
        """Hand in a script. Its job makes one audio file of it."""
        try:
            accepted = await dialogues.hand_in(script, user=request.user or request.caller)
        except (ScriptRefused, InvalidSetting) as error:
            raise _refusal(error) from None
        request.note(accepted.job_id, turns=len(script.turns), provider=script.provider)
        return accepted

    @routes.get("/jobs", scope="read")
    async def find(
        *,
        status: str | None = None,
        user: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> JobsPage:
        """List jobs, the newest first."""
        wanted = DialogueFilter(
            status=_status(status),
            user=_user(user),
            created_after=_moment("created_after", created_after),
            created_before=_moment("created_before", created_before),
        )
        if cursor is not None and not _ID.fullmatch(cursor):
            raise Refusal(
                422, f"cursor is {shown(cursor)}; use the value of the page before", field="cursor"
            )
        found, following = await dialogues.list(wanted, limit=_limit(limit), after=cursor)
        return JobsPage(jobs=found, next=following)

    @routes.get("/jobs/{job_id}", scope="read")
    async def show(job_id: str) -> JobView:
        """Return a job: how far it is, and the id of its file."""
        return _found(await dialogues.get(_known(job_id, "job")), job_id, "job")

    @routes.get("/jobs/{job_id}/turns", scope="read")
    async def turns(job_id: str) -> Turns:
        """Return the turns of a job. One that is spoken can be heard before the whole is done."""
        found = _found(await dialogues.turns(_known(job_id, "job")), job_id, "job")
        return Turns(turns=list(found))

    async def turn_file(job_id: str, turn: int) -> File:
        """Return one turn as a WAV file, with ranges."""
        found = await dialogues.turn_file(_known(job_id, "job"), turn)
        if found is None:
            raise Refusal(
                404,
                f"turn {turn} of job {shown(job_id)} cannot be heard yet, or there is none",
                word="turn-not-found",
            )
        return File(found)

    @routes.post("/jobs/{job_id}/retry", scope="write", status=202, action="dialogue.retry")
    async def retry(job_id: str, request: Request) -> JobView:
        """Hand in a job again that has failed. What was spoken is not spoken again."""
        found = _found(await dialogues.retry(_known(job_id, "job")), job_id, "job")
        request.note(job_id)
        return found

    @routes.delete("/jobs/{job_id}", scope="write", action="dialogue.delete")
    async def delete(job_id: str, request: Request) -> None:
        """Delete a job with its file; one that has not ended is stopped."""
        _found(await dialogues.delete(_known(job_id, "job")) or None, job_id, "job")
        request.note(job_id)

    for method in ("GET", "HEAD"):
        routes.add(method, "/jobs/{job_id}/turns/{turn}", turn_file, scope="read")


def _add_audio(routes: Routes, dialogues: Dialogues) -> None:
    @routes.get("/audio", scope="read")
    async def find(
        *,
        user: str | None = None,
        provider: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> AudioFilesPage:
        """List audio files, the newest first, also of jobs that are gone from the history."""
        wanted = AudioFilter(
            user=_user(user),
            provider=_user(provider, "provider"),
            created_after=_moment("created_after", created_after),
            created_before=_moment("created_before", created_before),
        )
        found, following = await dialogues.audio_files(wanted, limit=_limit(limit), after=cursor)
        return AudioFilesPage(audio_files=list(found), next=following)

    async def send(audio_file_id: str) -> File:
        """Return an audio file, with ranges."""
        row = _found(await dialogues.audio(_known(audio_file_id)), audio_file_id)
        return File(
            Artifact(
                layer=AUDIO_LAYER,
                name=row.path,
                path=row.artifact,
                size=row.bytes,
                sha256=row.checksum,
                media_type=row.media_type,
            )
        )

    for method in ("GET", "HEAD"):
        routes.add(method, "/audio/{audio_file_id}", send, scope="read")

    @routes.get("/audio/{audio_file_id}/details", scope="read")
    async def details(audio_file_id: str) -> AudioView:
        """Return what is known about an audio file."""
        return audio_view(_found(await dialogues.audio(_known(audio_file_id)), audio_file_id))

    @routes.delete("/audio/{audio_file_id}", scope="write", action="audio.delete")
    async def delete(audio_file_id: str, request: Request) -> None:
        """Delete an audio file, and the job that has made it."""
        _found(await dialogues.delete_audio(_known(audio_file_id)) or None, audio_file_id)
        request.note(audio_file_id)


def _refusal(error: ScriptRefused | InvalidSetting) -> Refusal:
    if isinstance(error, ScriptRefused):
        return Refusal(422, str(error), field=error.field, value=error.value, remedy=error.remedy)
    return Refusal(422, str(error), field="provider")


def _speaks(language: str | None, wanted: str) -> bool:
    plain = (language or "").lower()
    return plain == wanted.lower() or plain.startswith(f"{wanted.lower()}-")


def _status(text: str | None) -> Status | None:
    if not text:
        return None
    try:
        return Status(text)
    except ValueError:
        known = ", ".join(each.value for each in Status)
        raise Refusal(
            422, f"status is {shown(text)}; use one of {known}", field="status", value=text
        ) from None


def _user(text: str | None, field: str = "user") -> str | None:
    if text is not None and (len(text) > 200 or not text.isprintable()):
        raise Refusal(422, f"{field} is {shown(text)}; give a name", field=field)
    return text or None


def _moment(field: str, text: str | None) -> datetime | None:
    """Return a moment, in UTC if it says no zone."""
    if not text:
        return None
    try:
        # A plus sign in a query is a space.
        found = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        raise Refusal(
            422,
            f"{field} is {shown(text)}; write it as 2030-01-31T12:00:00Z",
            field=field,
            value=text,
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _limit(limit: int) -> int:
    if not 1 <= limit <= 200:
        raise Refusal(422, f"limit is {limit}; give 1 to 200", field="limit", value=limit)
    return limit


def _known(found_id: str, what: str = "audio file") -> str:
    """Return an id, or refuse what cannot be one: databases do not take every text."""
    if not _ID.fullmatch(found_id):
        _found(None, found_id, what)
    return found_id


def _found(found: T | None, found_id: str, what: str = "audio file") -> T:
    if found is None:
        word = f"{what.replace(' ', '-')}-not-found"
        raise Refusal(404, f"there is no {what} {shown(found_id)}", word=word)
    return found
