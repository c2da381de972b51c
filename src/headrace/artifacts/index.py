"""The index of a job's files: what the engine keeps about each, and what the job came with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from headrace.artifacts.names import (
    aside,
    check_layer,
    check_name,
    check_path,
    entry_name,
    place,
)
from headrace.artifacts.store import Stored
from headrace.engine.base import Engine
from headrace.errors import InvalidInput, InvalidName
from headrace.model.artifact import Artifact
from headrace.model.durable.writes import Entry, StoredEntry
from headrace.model.job import Job

KIND = "artifact"
"""Entries of this kind are the index."""
HANDED_IN_LAYER = "bronze"
# No attempt has the token 0, so what was handed in is never overwritten by one.
HANDED_IN_TOKEN = 0

METADATA_BYTES = 8_192
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+\-]{1,127}/[\w!#$&^.+\-]{1,127}(;[ -~]{1,255})?", re.ASCII)


class ArtifactRecord(msgspec.Struct, omit_defaults=True):
    """What is kept with the job about one file. `name` is there if the entry has a short one."""

    path: str
    size: int
    media_type: str | None = None
    sha256: str | None = None
    name: str | None = None
    metadata: dict[str, str] = {}


class HandedIn(msgspec.Struct, frozen=True):
    """A file that came with a job, as the job's `meta` names it."""

    argument: str
    name: str
    path: str
    size: int
    media_type: str | None = None
    sha256: str | None = None


def check_media_type(media_type: str | None) -> str | None:
    """Check a media type: it goes into headers."""
    if media_type is not None and not _MEDIA_TYPE.fullmatch(media_type):
        raise InvalidInput(
            f"media_type {ascii(media_type)[:60]} is not valid; use one like text/csv"
        )
    return media_type


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Check what a handler says about its file: text by text, and not too much."""
    try:
        found = msgspec.convert(dict(metadata or {}), dict[str, str])
        size = len(msgspec.json.encode(found))
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(f"metadata is not text by text: {error}; use str for both") from None
    if size > METADATA_BYTES:
        raise InvalidInput(
            f"metadata takes {size:,} bytes, the limit is {METADATA_BYTES:,}; keep more as a file"
        )
    return found


def make_entry(
    layer: str,
    name: str,
    stored: Stored,
    *,
    media_type: str | None,
    metadata: dict[str, str],
) -> Entry:
    """The entry for a file that has been stored."""
    short = entry_name(layer, name)
    record = ArtifactRecord(
        path=stored.path,
        size=stored.size,
        media_type=media_type,
        sha256=stored.sha256,
        name=None if short == f"{layer}/{name}" else name,
        metadata=metadata,
    )
    return Entry(KIND, short, msgspec.json.encode(record))


def read_entries(entries: Iterable[StoredEntry]) -> dict[tuple[str, str], Artifact]:
    """The files of a job by layer and name, from its entries of our kind."""
    files = {}
    for entry in entries:
        layer, _, short = entry.name.partition("/")
        record = msgspec.json.decode(entry.body, type=ArtifactRecord)
        name = record.name or short
        files[layer, name] = Artifact(
            layer=layer,
            name=name,
            path=record.path,
            size=record.size,
            sha256=record.sha256,
            media_type=record.media_type,
            metadata=record.metadata,
            at=entry.at,
        )
    return files


def read_handed_in(
    job_id: str, meta: Mapping[str, Any], at: datetime | None = None
) -> dict[tuple[str, str], Artifact]:
    """The files that came with a job, from its `meta`. Only files of its own are believed: a child
    has the `meta` of its parent, and callers write there what they like.
    """
    files = meta.get("files")
    if not isinstance(files, list):
        return {}
    try:
        kept = msgspec.convert(files, list[HandedIn])
    except msgspec.ValidationError:
        return {}  # the caller's own field of that name
    folder = f"{HANDED_IN_LAYER}/{job_id}/{HANDED_IN_TOKEN}/"
    found = {}
    for each in kept:
        with suppress(InvalidName):
            check_path(each.path)
            if each.path.startswith(folder):
                name = _handed_in_name(each, job_id)
                found[HANDED_IN_LAYER, name] = Artifact(
                    layer=HANDED_IN_LAYER,
                    name=name,
                    path=each.path,
                    size=each.size,
                    sha256=each.sha256,
                    media_type=each.media_type,
                    at=at,
                )
    return found


def _handed_in_name(file: HandedIn, job_id: str) -> str:
    """Return the name of an upload. Earlier versions put the name of the argument before it."""
    earlier = f"{file.argument}/{file.name}"
    path = place(HANDED_IN_LAYER, job_id, HANDED_IN_TOKEN, earlier)
    return earlier if file.path in (path, aside(path)) else check_name(file.name)


async def files_of(engine: Engine, job: Job) -> dict[tuple[str, str], Artifact]:
    """Every file of a job by layer and name: those it came with, and those that it has kept."""
    handed_in = read_handed_in(job.id, job.meta, job.created_at)
    return handed_in | read_entries(await engine.entries(job.id, KIND))


async def file_of(engine: Engine, job: Job, layer: str, name: str) -> Artifact | None:
    """One file of a job, or None."""
    return (await files_of(engine, job)).get((check_layer(layer), check_name(name)))
