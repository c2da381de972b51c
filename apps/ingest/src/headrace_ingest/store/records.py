"""Plain data about documents, as the repository takes and returns it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a document is. `REPLACED`: a newer version of it is completed."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    REPLACED = "replaced"


class Outcome(StrEnum):
    """What became of a write.

    `STALE`: a later attempt has written; nothing was changed. `GONE`: the document was deleted.
    `SUPERSEDED`: a version that was handed in later is completed, so this one was not stored.
    """

    STORED = "stored"
    STALE = "stale"
    GONE = "gone"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document as it is handed in. `document_id` is the id of its job."""

    document_id: str
    name: str
    path: str
    sha256: str
    media_type: str | None = None
    owner: str | None = None
    artifact: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: float | None = None
    """When it was handed in; None: when its row is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed:
    """What processing found out about a document, beside its chunks."""

    document_id: str
    characters: int
    model: str
    media_type: str | None = None
    personal_data: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRow:
    """A document as it is stored."""

    document_id: str
    name: str
    path: str
    sha256: str
    media_type: str | None
    status: Status
    stage: str
    progress: int
    error: str | None
    characters: int
    chunks: int
    personal_data: Mapping[str, int]
    metadata: Mapping[str, Any]
    owner: str | None
    model: str | None
    token: int
    version: int
    artifact: str | None
    replaced_by: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of `Repository.store`. `replaced` are the older versions that this one replaced:
    their originals are no longer needed. `row` is that of the document now, unless nothing of it
    was written.
    """

    outcome: Outcome
    replaced: Sequence[DocumentRow] = ()
    row: DocumentRow | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """The result of `Repository.resume`. `row` is what was found; None if there is none."""

    outcome: Outcome
    row: DocumentRow | None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Some documents, the newest first. `next` is given to the next call; None at the end."""

    documents: Sequence[DocumentRow]
    next: str | None


@dataclass(frozen=True, slots=True)
class Totals:
    """How many completed documents and chunks there are, and the paths of all documents."""

    documents: int
    chunks: int
    paths: Sequence[str]


def clean_path(path: str) -> str:
    """Return a taxonomy path with one slash before each part and none at its end; "/" is all."""
    parts = [part for part in path.split("/") if part]
    return "/" + "/".join(parts)


def below(path: str, parent: str) -> bool:
    """Return whether a path is another one or within it: /hr/leave is in /hr, /hrx is not."""
    return parent in ("/", path) or path.startswith(f"{parent}/")
