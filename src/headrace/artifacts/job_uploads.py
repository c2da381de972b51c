"""Files that come with a job: named, stored, and enqueued with it, or not at all.

A record is written first (`pending_uploads`), then the files, then the job. Whoever is killed in
between leaves files that upkeep removes, since no job was made of them.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from headrace.artifacts.content import Source, source_of
from headrace.artifacts.index import HANDED_IN_LAYER, HANDED_IN_TOKEN, HandedIn, check_media_type
from headrace.artifacts.media_types import HEAD, media_type_of
from headrace.artifacts.names import check_path, place
from headrace.artifacts.pending_uploads import expect, forget
from headrace.artifacts.store import ArtifactStore, Stored
from headrace.engine.base import Engine
from headrace.errors import EngineError, InvalidInput, JobConflict, LaneFull
from headrace.model.artifact import Artifact, Content, File
from headrace.model.ids import new_id
from headrace.model.job import Job, NewJob
from headrace.model.sealed import key_of_args

if TYPE_CHECKING:
    from headrace.encryption import Sealing

MOST_FILES = 100
# Names may be longer in a store; nobody reads more of one.
NAME_CHARACTERS = 100


class Upload(msgspec.Struct):
    """A file for an argument of a job. `media_type` is what the sender said; `stored` is there if
    the file was put before.
    """

    argument: str
    name: str
    content: Content | None
    media_type: str | None = None
    stored: Artifact | None = None


def uploads_of(files: Mapping[str, File]) -> list[Upload]:
    """Return the files that a program gives with a job, by argument."""
    if not files or len(files) > MOST_FILES:
        raise InvalidInput(f"files has {len(files)} files; give 1 to {MOST_FILES}")
    return [_upload(argument, file) for argument, file in files.items()]


def _upload(argument: str, file: File) -> Upload:
    if isinstance(file, Artifact):
        return Upload(argument, file.name, None, file.media_type, file)
    if isinstance(file, tuple):
        if len(file) != 2 or not isinstance(file[0], str):
            raise InvalidInput(f"file {argument!r} is a tuple, but not of a name and content")
        source_of(file[1])
        return Upload(argument, file_name(file[0]), file[1])
    source_of(file)  # refuses what is no content
    name = getattr(file, "name", None)  # of a Path, or an open file
    return Upload(argument, file_name(name if isinstance(name, str) else argument), file)


def file_name(given: str | None) -> str:
    """Return the last part of a name that a browser or a program gave, if it is usable."""
    name = PurePosixPath((given or "").replace("\\", "/")).name
    # Some systems send letters and their accents (or the parts of a syllable) one by one.
    name = unicodedata.normalize("NFC", name)
    name = "".join(each for each in name if each.isprintable())[-NAME_CHARACTERS:].strip()
    return name if name.strip(".") else "file"


def told_apart(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return the names, the second of one name with a number: `a.txt`, `a (2).txt`."""
    seen = {name.casefold() for name in taken}
    made = []
    for name in names:
        stem, dot, extension = name.rpartition(".")
        if not stem:
            stem, dot, extension = name, "", ""
        numbered = (f"{stem} ({number}){dot}{extension}" for number in itertools.count(2))
        # Not every file system tells small letters from capitals.
        free = next(
            each for each in itertools.chain([name], numbered) if each.casefold() not in seen
        )
        seen.add(free.casefold())
        made.append(free)
    return made


def plan(job_id: str, uploads: Sequence[Upload]) -> list[HandedIn]:
    """Return where the files of a job will be, before they are stored."""
    before = [each.stored.name for each in uploads if each.stored is not None]
    fresh = [each.name for each in uploads if each.stored is None]
    names = iter(told_apart(fresh, before))
    planned = []
    for each in uploads:
        if (file := each.stored) is not None:
            planned.append(
                HandedIn(
                    each.argument, file.name, file.path, file.size, file.media_type, file.sha256
                )
            )
            continue
        name = next(names)
        path = place(HANDED_IN_LAYER, job_id, HANDED_IN_TOKEN, name)
        planned.append(HandedIn(each.argument, name, path, 0, _valid(each.media_type)))
    return planned


async def enqueue_with_files(
    engine: Engine,
    store: ArtifactStore,
    uploads: Sequence[Upload],
    make: Callable[[list[HandedIn]], NewJob],
    insert: Callable[[NewJob], Awaitable[Job]],
    *,
    sealing: Sealing | None = None,
) -> tuple[Job, bool]:
    """Store files and a job, or neither. Also return whether the job is new.

    `make` checks and makes the job of what is known about its files: it is called before anything
    is written, and once more afterwards. `sealing` has sealed its arguments, if they are.
    """
    job_id = await _job_id(engine, uploads)
    files = plan(job_id, uploads)
    policy = make(files).policy
    if policy is not None and policy.on_duplicate == "debounce":
        raise InvalidInput(
            "files belong to one job, so they cannot become those of an earlier one; use "
            'on_duplicate="replace", or leave the files out'
        )
    await expect(engine, job_id)
    new: list[str] = []
    unwanted = True
    try:
        for index, (file, upload) in enumerate(zip(files, uploads, strict=True)):
            if upload.content is None:
                continue
            stored, media_type = await put(store, file.path, upload)
            new.append(stored.path)
            files[index] = msgspec.structs.replace(
                file,
                path=stored.path,
                size=stored.size,
                sha256=stored.sha256,
                media_type=media_type,
            )
        job = make(files)
        if sealing is not None and key_of_args(job.args) is not None:
            job = sealing.with_id(job, job_id)
        job.id = job_id
        # From here on the job may exist, even if the engine does not say so.
        unwanted = False
        found = await insert(job)
        unwanted = found.id != job_id
    except (InvalidInput, LaneFull):
        unwanted = True
        raise
    finally:
        if unwanted:
            # What cannot be removed now is removed by upkeep, as is what no job was made of.
            with suppress(EngineError):
                if all(each.stored is None for each in uploads):
                    await store.remove_job(job_id)
                    await forget(engine, job_id)
                for path in new:
                    await store.remove(path)
    return found, not unwanted


async def put(store: ArtifactStore, path: str, upload: Upload) -> tuple[Stored, str]:
    """Store one file, and return it with its media type."""
    content: Content = b"" if upload.content is None else upload.content
    source = source_of(content)
    head, rest = await _head(source)
    media_type = media_type_of(head, upload.name, _valid(upload.media_type))
    if source.repeatable:
        await rest.aclose()
        return await store.put(path, content, media_type=media_type), media_type
    return await store.put(path, _whole(head, rest), media_type=media_type), media_type


async def _head(source: Source) -> tuple[bytes, AsyncGenerator[bytes, None]]:
    chunks = source.chunks()
    parts, size = [], 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size >= HEAD:
            break
    return b"".join(parts), chunks


async def _whole(head: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    if head:
        yield head
    async for chunk in rest:
        yield chunk


async def _job_id(engine: Engine, uploads: Sequence[Upload]) -> str:
    """Return the id of the job: that of files which were put before, or a new one."""
    before = {check_path(each.stored.path)[1] for each in uploads if each.stored is not None}
    if not before:
        return new_id()
    if len(before) > 1:
        raise InvalidInput(
            "files has files that were put for different jobs; put them with the same job_id"
        )
    [job_id] = before
    for each in uploads:
        folder = f"{HANDED_IN_LAYER}/{job_id}/{HANDED_IN_TOKEN}/"
        if each.stored is not None and not each.stored.path.startswith(folder):
            raise InvalidInput(
                f"file {each.stored.path} belongs to an attempt of a job; pass its path as an "
                "ordinary argument instead"
            )
    if await engine.get([job_id]):
        raise JobConflict(f"job {job_id} was enqueued with its files already; put them anew")
    return job_id


def _valid(media_type: str | None) -> str | None:
    try:
        return check_media_type(media_type)
    except InvalidInput:
        return None
