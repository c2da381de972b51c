"""Documents as the API returns them. No I/O."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from headrace_ingest.store.records import DocumentRow

if TYPE_CHECKING:
    from headrace_ingest.search.search import Hit


class DocumentView(msgspec.Struct, kw_only=True):
    """A document as the API returns it."""

    document_id: str
    job_id: str
    name: str
    path: str
    status: str
    stage: str
    progress: int
    chunks: int
    error: str | None
    characters: int
    personal_data: dict[str, int]
    """How often each kind of personal data was masked."""
    metadata: dict[str, Any]
    media_type: str | None
    model: str | None
    version: int
    owner: str | None
    original: bool
    """Whether the original can be opened."""
    created_at: datetime
    updated_at: datetime


class Accepted(msgspec.Struct, kw_only=True):
    """A document that was handed in. `new` is False if the same file was there already."""

    document_id: str
    job_id: str
    name: str
    status: str
    new: bool = True


class HitView(msgspec.Struct, kw_only=True):
    """A chunk that was found; `ranges` are where words of the question stand in `text`."""

    document_id: str
    chunk_id: str
    name: str
    path: str
    text: str
    score: float
    ranges: list[tuple[int, int]]


def hit_of(hit: Hit) -> HitView:
    """Return a hit as the API does."""
    return HitView(
        document_id=hit.document_id,
        chunk_id=hit.chunk_id,
        name=hit.name,
        path=hit.path,
        text=hit.text,
        score=hit.score,
        ranges=hit.highlights,
    )


def view_of(row: DocumentRow) -> DocumentView:
    """Return a row as the API does."""
    return DocumentView(
        document_id=row.document_id,
        job_id=row.document_id,
        name=row.name,
        path=row.path,
        status=row.status,
        stage=row.stage,
        progress=row.progress,
        chunks=row.chunks,
        error=row.error,
        characters=row.characters,
        personal_data=dict(row.personal_data),
        metadata=dict(row.metadata),
        media_type=row.media_type,
        model=row.model,
        version=row.version,
        owner=row.owner,
        original=row.artifact is not None,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def known(row: DocumentRow) -> Accepted:
    """Return a document that was there already, for who hands it in again."""
    return Accepted(
        document_id=row.document_id,
        job_id=row.document_id,
        name=row.name,
        status=row.status,
        new=False,
    )
