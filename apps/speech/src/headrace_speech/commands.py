"""The commands `headrace speech …`. They work on the store, or by the server of API_URL."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from headrace import InvalidInput, JobNotFound, Status, ValidationError
from headrace.bundles import Session
from headrace_speech.dialogue_files import read_dialogue
from headrace_speech.dialogues import LOCAL_USER, DialogueFilter, Dialogues
from headrace_speech.remote import RemoteDialogues
from headrace_speech.script import FORMATS
from headrace_speech.service import SpeechService
from headrace_speech.views import JobView

POLL_SECONDS = 0.3
# So long a job may wait before it is said that perhaps nobody works.
PATIENCE_SECONDS = 5.0
ANY = Dialogues | RemoteDialogues


def commands() -> click.Group:
    """Return the group."""
    group = click.Group("speech", help="Dialogues: say, list, fetch, delete; voices.")
    for command in (_say(), _list(), _show(), _get(), _retry(), _delete(), _voices()):
        group.add_command(command)
    return group


def _say() -> click.Command:
    @click.command("say")
    @click.argument("dialogue", type=click.Path(path_type=Path, exists=True, dir_okay=False))
    @click.option("-o", "--output", type=click.Path(path_type=Path), help="Where to write it.")
    @click.option("--provider", help="Who speaks (default: what the file says, or local).")
    @click.option("--format", "format_", type=click.Choice(FORMATS), help="mp3 or wav.")
    @click.option("--user", default=LOCAL_USER, help="For whom, on the store.")
    @click.option("--wait/--no-wait", default=True, help="Wait until it is done.")
    async def say(
        session: Session,
        dialogue: Path,
        *,
        output: Path | None,
        provider: str | None,
        format_: str | None,
        user: str,
        wait: bool,
    ) -> int:
        """Make an audio file of a dialogue in YAML or JSON. A worker with the bundle speaks it.

        \b
        voices: {Mina: ko+f3, Tom: en-us}
        turns:
          - Mina: 안녕하세요
          - Tom: Good morning
        """
        if output is not None and format_ is None and output.suffix[1:].lower() in FORMATS:
            format_ = output.suffix[1:].lower()
        if output is not None and not wait:
            raise InvalidInput("-o needs the file: leave out --no-wait")
        async with _opened(session) as dialogues:
            try:
                script = await asyncio.to_thread(
                    read_dialogue, dialogue, provider=provider, format=format_
                )
                accepted = await dialogues.hand_in(script, user=user)
            except ValidationError as error:
                raise InvalidInput(str(error)) from None
            if not wait:
                _print(session, accepted, f"Handed in as job {accepted.job_id}.")
                return 0
            done = await _ended(session, dialogues, accepted.job_id)
            if done.audio_file_id is None:
                _print(session, done, "")
                session.notice(f"{done.status}: {done.error_message or 'no file was made'}")
                return 1
            if output is not None:
                await _write(dialogues, done.audio_file_id, output)
        where = f" in {output}" if output is not None else f"; job {done.job_id}"
        _print(session, done, f"{done.seconds:.1f} s of {done.turns} turns{where}.")
        return 0

    return say


def _list() -> click.Command:
    @click.command("list")
    @click.option("--status", type=click.Choice([each.value for each in Status]))
    @click.option("--user", help="Only those of this user.")
    @click.option("--since", type=click.DateTime(), help="Only those made since (UTC).")
    @click.option("--limit", default=50, type=click.IntRange(1, 200), help="At most so many (50).")
    async def list_jobs(
        session: Session,
        status: str | None,
        user: str | None,
        since: datetime | None,
        limit: int,
    ) -> None:
        """List jobs, the newest first."""
        wanted = DialogueFilter(
            status=None if status is None else Status(status),
            user=user,
            created_after=None if since is None else since.replace(tzinfo=UTC),
        )
        async with _opened(session) as dialogues:
            found, following = await dialogues.list(wanted, limit=limit, after=None)
        if session.json:
            session.print_json({"jobs": msgspec.to_builtins(found), "next": following})
        else:
            _print_table(session, found)

    return list_jobs


def _show() -> click.Command:
    @click.command("show")
    @click.argument("job_id")
    async def show(session: Session, job_id: str) -> None:
        """Show a job."""
        async with _opened(session) as dialogues:
            found = await _known(dialogues, job_id)
        fields = msgspec.to_builtins(found)
        if session.json:
            session.print_json(fields)
        else:
            session.print_table(["FIELD", "VALUE"], list(fields.items()))

    return show


def _get() -> click.Command:
    @click.command("get")
    @click.argument("job_id")
    @click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
    async def get(session: Session, job_id: str, output: Path) -> None:
        """Write the audio file of a job to disk."""
        async with _opened(session) as dialogues:
            found = await _known(dialogues, job_id)
            if found.audio_file_id is None:
                raise InvalidInput(f"job {job_id} has no audio file: it is {found.status}")
            await _write(dialogues, found.audio_file_id, output)
        _print(session, found, f"Written to {output}.")

    return get


def _retry() -> click.Command:
    @click.command("retry")
    @click.argument("job_id")
    @click.option("--wait/--no-wait", default=True, help="Wait until it is done.")
    async def retry(session: Session, job_id: str, *, wait: bool) -> int:
        """Hand in a job again that has failed. What was spoken is not spoken again."""
        async with _opened(session) as dialogues:
            found = await dialogues.retry(job_id)
            if found is None:
                raise JobNotFound(f"there is no job {job_id}")
            if wait:
                found = await _ended(session, dialogues, job_id)
        _print(session, found, f"Job {job_id} is {found.status}.")
        return 1 if wait and found.audio_file_id is None else 0

    return retry


def _delete() -> click.Command:
    @click.command("delete")
    @click.argument("job_ids", nargs=-1, required=True)
    async def delete(session: Session, job_ids: tuple[str, ...]) -> int:
        """Delete jobs with their audio files. Jobs that have not ended are stopped."""
        async with _opened(session) as dialogues:
            gone = [each for each in job_ids if await dialogues.delete(each)]
        missing = [each for each in job_ids if each not in gone]
        if session.json:
            session.print_json({"deleted": gone, "missing": missing})
        else:
            session.print_line(f"{len(gone)} deleted.")
        for each in missing:
            session.notice(f"there is no job {each}")
        return 1 if missing else 0

    return delete


def _voices() -> click.Command:
    @click.command("voices")
    @click.option("--provider", default="local", help="Whose voices (default local).")
    @click.option("--language", help="Only those of this language, such as ko.")
    @click.option("--variants", is_flag=True, help="What can follow a voice: en-us+f3.")
    async def voices(
        session: Session, provider: str, language: str | None, *, variants: bool
    ) -> None:
        """List voices."""
        async with _opened(session) as dialogues:
            found = await dialogues.voices(provider)
        listed = [
            each
            for each in (found.variants if variants else found.voices)
            if language is None or (each.language or "").partition("-")[0] == language.lower()
        ]
        if session.json:
            shown = {"provider": found.provider, "voices": msgspec.to_builtins(listed)}
            session.print_json(shown)
        else:
            rows = [(e.voice, e.name, e.language or "", e.gender or "") for e in listed]
            session.print_table(["VOICE", "NAME", "LANGUAGE", "GENDER"], rows)

    return voices


@asynccontextmanager
async def _opened(session: Session) -> AsyncIterator[ANY]:
    if session.remote:
        settings = session.settings
        async with RemoteDialogues.connected(str(settings.api_url), settings.api_key) as remote:
            yield remote
    else:
        async with session.setup() as setup:
            service = SpeechService(setup)
            with contextlib.closing(service):
                yield Dialogues(service)


async def _known(dialogues: ANY, job_id: str) -> JobView:
    found = await dialogues.get(job_id)
    if found is None:
        raise JobNotFound(f"there is no job {job_id}")
    return found


async def _ended(session: Session, dialogues: ANY, job_id: str) -> JobView:
    """Wait until a job has ended; show how far it is."""
    loop = asyncio.get_running_loop()
    began, told = loop.time(), False
    with session.progress("spoken", 100) as show:
        while True:
            found = await _known(dialogues, job_id)
            if Status(found.status).final:
                show(100)
                return found
            show(int(found.progress))
            waiting = found.status == Status.PENDING and loop.time() - began > PATIENCE_SECONDS
            if waiting and not told:
                told = True
                session.notice(
                    "the job waits: for others of the same user, or for a worker "
                    "(headrace worker --bundle speech)"
                )
            await asyncio.sleep(POLL_SECONDS)


async def _write(dialogues: ANY, audio_file_id: str, output: Path) -> None:
    """Write a file whole or not at all."""
    part = output.with_name(f".{output.name}.part")
    try:
        with part.open("wb") as target:
            async for piece in dialogues.content(audio_file_id):
                await asyncio.to_thread(target.write, piece)
        part.replace(output)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _print(session: Session, document: msgspec.Struct, line: str) -> None:
    if session.json:
        session.print_json(msgspec.to_builtins(document))
    elif line:
        session.print_line(line)


def _print_table(session: Session, jobs: Sequence[JobView]) -> None:
    rows = [
        (
            each.job_id,
            each.title,
            each.user,
            each.status,
            f"{each.progress:.0f}%",
            "" if each.seconds is None else f"{each.seconds:.1f} s",
            each.error_message or "",
        )
        for each in jobs
    ]
    headers = ["JOB", "TITLE", "USER", "STATUS", "PROGRESS", "LENGTH", "ERROR"]
    session.print_table(headers, rows)
