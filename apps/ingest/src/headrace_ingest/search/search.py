"""Search over documents by meaning and by words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import InvalidInput
from headrace_ingest.embedding import Embedder, Vectors
from headrace_ingest.search.highlight import ranges
from headrace_ingest.search.index import MEMORY_BYTES, IndexTooLarge, MemoryIndex
from headrace_ingest.search.ranking import MODES, Mode, Question, rank
from headrace_ingest.search.server import METHOD, find_nearest
from headrace_ingest.search.words import Terms, terms_of
from headrace_ingest.store.records import Status, clean_path
from headrace_ingest.store.statements import CHUNKS, DOCUMENTS, chunk_id_of
from headrace_ingest.store.vectors import VectorFormat

LARGEST_K = 100
LONGEST_QUESTION = 1000
# Results that were deleted a moment ago are left out; so many more are looked for.
RESERVE = 10


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. `highlights` are where words of the question stand in `text`."""

    document_id: str
    chunk_id: str
    name: str
    path: str
    text: str
    score: float
    highlights: list[tuple[int, int]]


class Search:
    """Searches the documents of one database, with vectors of one embedder."""

    def __init__(
        self, engine: AsyncEngine, embedder: Embedder, *, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._engine = engine
        self._embedder = embedder
        self._by_server = False
        self.index = MemoryIndex(
            engine, embedder.name, embedder.dimensions, memory_bytes=memory_bytes
        )

    @property
    def method(self) -> str:
        """Return how vectors are compared, in words for people."""
        if self._by_server:
            return METHOD
        count = sum(len(segment.nearest) for segment in self.index.segments)
        return (
            f"in memory: {count:,} vectors of {self.index.chunks:,} chunks, "
            f"{self.index.size / 1024**2:.0f} MB"
        )

    async def search(
        self, q: str, path: str | None = None, k: int = 10, mode: Mode = "default"
    ) -> list[Hit]:
        """Return the `k` best chunks within a path, the best first.

        `mode`: "words" compares words alone; "chunk" one vector for each chunk, if such were
        stored.
        """
        question = " ".join(q.split())
        if not question or len(question) > LONGEST_QUESTION:
            raise InvalidInput(f"q has {len(question)} characters; give 1 to {LONGEST_QUESTION}")
        if not 1 <= k <= LARGEST_K:
            raise InvalidInput(f"k is {k}; give 1 to {LARGEST_K}")
        if mode not in MODES:
            raise InvalidInput(f"mode is {mode!r}; use one of {', '.join(MODES)}")
        terms = terms_of(question)
        vector = None
        if mode != "words":
            vector = (await self._embedder.batch_generate_embeddings([question]))[0]
        within = clean_path(path or "/")
        scores = None
        if vector is not None and mode == "default":
            scores = await self._found_by_server(within, terms, vector)
        if scores is None:
            asked = Question(terms, vector, mode, k + RESERVE)
            scores = await self._found_in_memory(within, asked)
        return await self._hits(scores, terms, k)

    async def _found_in_memory(self, path: str, asked: Question) -> dict[str, float]:
        await self.index.refresh()
        allowed = partial(self.index.allowed, path=path)
        found = await asyncio.to_thread(rank, self.index.segments, asked, allowed)
        return {chunk_id_of(each.document_id, each.position): each.score for each in found}

    async def _found_by_server(
        self, path: str, terms: Terms, vector: Vectors
    ) -> dict[str, float] | None:
        """Ask pgvector, where there is one, if the vectors have turned out to be too many."""
        if not self._by_server:
            try:
                await self.index.refresh()
            except IndexTooLarge:
                if self.index.vector_format is not VectorFormat.HALFVEC:
                    raise
                self._by_server = True
            else:
                return None
        async with self._engine.connect() as connection:
            return await find_nearest(connection, self._embedder.name, path, terms, vector)

    async def _hits(self, scores: Mapping[str, float], terms: Terms, k: int) -> list[Hit]:
        """Read the texts of the best. What was deleted meanwhile is left out."""
        best = list(scores)[: k + RESERVE]
        query = (
            sa.select(
                CHUNKS.c.chunk_id,
                CHUNKS.c.document_id,
                CHUNKS.c.text,
                DOCUMENTS.c.name,
                DOCUMENTS.c.path,
            )
            .join_from(CHUNKS, DOCUMENTS, CHUNKS.c.document_id == DOCUMENTS.c.document_id)
            .where(CHUNKS.c.chunk_id.in_(best), DOCUMENTS.c.status != Status.REPLACED)
        )
        async with self._engine.connect() as connection:
            rows = {row.chunk_id: row for row in await connection.execute(query)}
        there = [(rows[each], scores[each]) for each in best if each in rows]
        return [
            Hit(
                document_id=row.document_id,
                chunk_id=row.chunk_id,
                name=row.name,
                path=row.path,
                text=row.text,
                score=round(score, 4),
                highlights=ranges(row.text, terms),
            )
            for row, score in there[:k]
        ]
