"""What finished stages leave for a later attempt: masked text and vectors, never unmasked text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from headrace_ingest.chunking import Chunk
from headrace_ingest.embedding import Embedder, Vectors
from headrace_ingest.store.records import Outcome
from headrace_ingest.store.repository import Repository

MASKED = "masked"
# As they are stored in the end, so that nothing is lost.
NUMBERS = "<f2"

ChunkVectors = Mapping[int, Vectors]
"""The vectors of a chunk by the number of the sentence."""


class MaskedText(msgspec.Struct, frozen=True, kw_only=True):
    """The chunks of a document without personal data, and what else is stored with it."""

    chunks: list[Chunk]
    personal_data: dict[str, int]
    characters: int
    media_type: str


class _Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of some chunks, and the numbers of their sentences."""

    model: str
    dimensions: int
    sentences: list[list[int]]
    vectors: bytes


@dataclass(frozen=True)
class Work:
    """What the attempts at one document leave to each other. Writes say whether they count, as all
    of the repository do.
    """

    repository: Repository
    document_id: str
    token: int

    async def leave_masked(self, masked: MaskedText) -> Outcome:
        """Leave a masked text. Vectors that were left belong to another one, and go."""
        content = await asyncio.to_thread(msgspec.msgpack.encode, masked)
        return await self.repository.save_work(
            self.document_id, self.token, MASKED, content, only=True
        )

    async def masked(self) -> MaskedText | None:
        """Return the masked text that was left, if it is there."""
        content = await self.repository.read_work(self.document_id, MASKED)
        if content is None:
            return None
        return await asyncio.to_thread(msgspec.msgpack.decode, content, type=MaskedText)

    async def leave_vectors(
        self, start: int, vectors: Sequence[ChunkVectors], embedder: Embedder
    ) -> Outcome:
        """Leave the vectors of a batch that begins with this chunk."""
        content = await asyncio.to_thread(_encode, vectors, embedder)
        return await self.repository.save_work(
            self.document_id, self.token, f"vectors {start}", content
        )

    async def vectors(
        self, start: int, count: int, embedder: Embedder
    ) -> list[ChunkVectors] | None:
        """Return the vectors that were left of a batch of so many chunks; None if there are none,
        or if they are of another model or batch, as after a change of settings.
        """
        if self.token == 1:
            return None  # there was no attempt before
        content = await self.repository.read_work(self.document_id, f"vectors {start}")
        if content is None:
            return None
        batch = msgspec.msgpack.decode(content, type=_Batch)
        made_of = (batch.model, batch.dimensions, len(batch.sentences))
        if made_of != (embedder.name, embedder.dimensions, count):
            return None
        return _decode(batch)


def _encode(vectors: Sequence[ChunkVectors], embedder: Embedder) -> bytes:
    import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

    rows = [row for numbered in vectors for row in numbered.values()]
    return msgspec.msgpack.encode(
        _Batch(
            model=embedder.name,
            dimensions=embedder.dimensions,
            sentences=[list(numbered) for numbered in vectors],
            vectors=np.array(rows, NUMBERS).tobytes(),
        )
    )


def _decode(batch: _Batch) -> list[ChunkVectors]:
    import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

    flat = np.frombuffer(batch.vectors, NUMBERS).astype(np.float32)
    rows = iter(flat.reshape(-1, batch.dimensions))
    return [{number: next(rows) for number in numbers} for numbers in batch.sentences]
