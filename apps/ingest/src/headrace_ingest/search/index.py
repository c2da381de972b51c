"""The vectors and words of all documents in the memory of this process, kept in step with the
tables: each change has a number, and only what changed since the last look is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headrace import HeadraceError
from headrace_ingest.search.nearest import Mask
from headrace_ingest.search.segment import LoadedDocument, Segment
from headrace_ingest.search.words import unpack
from headrace_ingest.store.records import Status, below
from headrace_ingest.store.statements import CHANGES, CHUNKS, COUNTER, DOCUMENTS
from headrace_ingest.store.tables import Embedding, table_of
from headrace_ingest.store.vectors import VectorFormat, read_format

EMBEDDINGS = table_of(Embedding)

MEMORY_BYTES = 2 * 1024**3
# A load reads so many chunks (or one document), so that it takes little memory itself.
CHUNKS_AT_ONCE = 4000
MOST_SEGMENTS = 8


class IndexTooLarge(HeadraceError):
    """The vectors of all documents do not fit into the memory that they may take."""


class _Change(NamedTuple):
    """A change, and what the document is now; None if it was deleted."""

    number: int
    document_id: str
    path: str | None
    status: str | None
    model: str | None
    chunks: int | None


class MemoryIndex:
    """What can be searched: documents that are completed, with vectors of one model."""

    def __init__(
        self,
        engine: AsyncEngine,
        model: str,
        dimensions: int,
        *,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._engine = engine
        self._model = model
        self._dimensions = dimensions
        self._memory_bytes = memory_bytes
        self._lock = asyncio.Lock()
        self.vector_format: VectorFormat | None = None
        self._position = 0
        self._places: dict[str, tuple[Segment, int]] = {}
        self._paths: dict[str, list[tuple[Segment, Mask]]] = {}
        self.segments: tuple[Segment, ...] = ()
        self.loaded = 0
        """How many documents were loaded so far, again after each change of them."""

    @property
    def size(self) -> int:
        """Return how many bytes of memory it takes."""
        return sum(segment.size for segment in self.segments)

    @property
    def chunks(self) -> int:
        """Return how many chunks can be found."""
        return int(sum(segment.alive.sum() for segment in self.segments))

    async def refresh(self) -> None:
        """Load what changed since the last call. Raises `IndexTooLarge`."""
        async with self._lock:
            while await self._load_some():
                pass

    def allowed(self, segment: Segment, path: str) -> Mask | None:
        """Return the chunks of a segment that are alive and within a path; None for all."""
        if path == "/":
            return None if segment.alive.all() else segment.alive
        for known, its_mask in self._paths.get(path, ()):
            if known is segment:
                return its_mask & segment.alive
        inside = [below(each, path) for _, each in segment.documents]
        mask: Mask = np.asarray(inside, np.bool_)[segment.document_of]
        if len(self._paths) > 64:
            self._paths.clear()
        self._paths.setdefault(path, []).append((segment, mask))
        return mask & segment.alive

    async def _load_some(self) -> bool:
        """Load the next changes; return whether there may be more."""
        async with self._engine.connect() as connection:
            await _snapshot(connection)
            if self.vector_format is None:
                self.vector_format = await read_format(connection)
            last: int = await connection.scalar(sa.select(COUNTER.c.number)) or 0
            if last == self._position:
                return False
            changes = await self._changes(connection)
            wanted = [each for each in changes if self._searchable(each)]
            documents = await _load(connection, self.vector_format, wanted, self._dimensions)
        if documents:
            fresh = await asyncio.to_thread(Segment.of, documents, self._dimensions)
            self._check_size(fresh.size)
            await self._replace([each.document_id for each in changes], fresh)
        else:
            await self._replace([each.document_id for each in changes], None)
        self._position = changes[-1].number if changes else last
        return bool(changes)

    async def _changes(self, connection: AsyncConnection) -> Sequence[_Change]:
        """Return the next changes in their order, so many that they can be loaded at once."""
        query = (
            sa.select(
                CHANGES.c.number,
                CHANGES.c.document_id,
                DOCUMENTS.c.path,
                DOCUMENTS.c.status,
                DOCUMENTS.c.model,
                DOCUMENTS.c.chunks,
            )
            .join_from(
                CHANGES, DOCUMENTS, CHANGES.c.document_id == DOCUMENTS.c.document_id, isouter=True
            )
            .where(CHANGES.c.number > self._position)
            .order_by(CHANGES.c.number)
            .limit(CHUNKS_AT_ONCE)
        )
        rows = [_Change(*row) for row in await connection.execute(query)]
        total = 0
        for place, row in enumerate(rows):
            total += row.chunks or 0
            if total > CHUNKS_AT_ONCE and place:
                return rows[:place]
        return rows

    def _searchable(self, row: _Change) -> bool:
        # A document that is processed again can be found by what is stored of it.
        return bool(row.chunks) and row.status != Status.REPLACED and row.model == self._model

    def _check_size(self, more: int) -> None:
        needed = self.size + more
        if needed > self._memory_bytes:
            self.segments, self._places, self._position = (), {}, 0
            raise IndexTooLarge(
                f"the vectors of the documents need more than {self._memory_bytes >> 20} MB of "
                "memory; raise HEADRACE_INGEST_SEARCH_MEMORY, or use PostgreSQL with pgvector"
            )

    async def _replace(self, changed: list[str], fresh: Segment | None) -> None:
        for document_id in changed:
            if (old := self._places.pop(document_id, None)) is not None:
                segment, place = old
                segment.alive[segment.document_of == place] = False
        if fresh is not None:
            self._add((*self.segments, fresh), [fresh])
            self.loaded += len(fresh.documents)
        if len(self.segments) > MOST_SEGMENTS or self._mostly_dead():
            # The smallest ones, so that large ones are seldom copied.
            ordered = sorted(self.segments, key=lambda each: len(each.position), reverse=True)
            large = 0 if self._mostly_dead() else MOST_SEGMENTS // 2
            merged = await asyncio.to_thread(Segment.merged, ordered[large:])
            self._add((*ordered[:large], merged), [merged])

    def _mostly_dead(self) -> bool:
        total = sum(len(segment.position) for segment in self.segments)
        return total > CHUNKS_AT_ONCE and self.chunks < total // 2

    def _add(self, segments: tuple[Segment, ...], fresh: list[Segment]) -> None:
        for segment in fresh:
            for place, (document_id, _) in enumerate(segment.documents):
                self._places[document_id] = (segment, place)
        self.segments = segments
        self._paths.clear()


async def _snapshot(connection: AsyncConnection) -> None:
    """Let all that is read be of one moment."""
    if connection.dialect.name == "sqlite":
        await connection.exec_driver_sql("BEGIN")
    else:
        await connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))


async def _load(
    connection: AsyncConnection,
    vector_format: VectorFormat,
    wanted: Sequence[_Change],
    dimensions: int,
) -> list[LoadedDocument]:
    """Return documents with their words and vectors."""
    ids = [row.document_id for row in wanted]
    if not ids:
        return []
    paths = {str(row.document_id): str(row.path) for row in wanted}
    chunks = await connection.execute(
        sa.select(CHUNKS.c.document_id, CHUNKS.c.position, CHUNKS.c.terms)
        .where(CHUNKS.c.document_id.in_(ids))
        .order_by(CHUNKS.c.document_id, CHUNKS.c.position)
    )
    vectors = await connection.execute(
        sa.select(
            CHUNKS.c.document_id, CHUNKS.c.position, EMBEDDINGS.c.sentence, vector_format.readable
        )
        .join_from(EMBEDDINGS, CHUNKS, EMBEDDINGS.c.chunk_id == CHUNKS.c.chunk_id)
        .where(CHUNKS.c.document_id.in_(ids))
        .order_by(CHUNKS.c.document_id, CHUNKS.c.position, EMBEDDINGS.c.sentence)
    )
    of_document = {key: list(rows) for key, rows in groupby(vectors.all(), key=itemgetter(0))}
    loaded = []
    for document_id, rows in groupby(chunks.all(), key=itemgetter(0)):
        own = list(rows)
        places = {row.position: place for place, row in enumerate(own)}
        # A document with vectors of another size cannot be compared; it is found by its words.
        fitting = [
            row
            for row in of_document.get(document_id, ())
            if vector_format.size_of(row[3]) == dimensions
        ]
        loaded.append(
            LoadedDocument(
                document_id,
                paths[document_id],
                [row.position for row in own],
                [unpack(row.terms) for row in own],
                [places[row.position] for row in fitting],
                [row.sentence for row in fitting],
                vector_format.unpack_many([row[3] for row in fitting], dimensions),
            )
        )
    return loaded
