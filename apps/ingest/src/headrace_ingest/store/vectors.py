"""How vectors are stored: bytes of 16-bit numbers, or the type `halfvec` of pgvector."""

from __future__ import annotations

from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace_ingest.embedding.base import Vectors
from headrace_ingest.store.tables import Embedding, table_of

_BYTES = "<f2"
# What PostgreSQL sends of a halfvec: count and an unused number of 16 bits each, then the numbers.
_SENT = ">f2"
_SENT_HEAD = 4

_TYPE_OF_COLUMN = sa.text(
    "SELECT atttypid::regtype::text FROM pg_attribute "
    "WHERE attrelid = to_regclass('embeddings') AND attname = 'vector'"
)


class VectorFormat(Enum):
    """The type of the column `embeddings.vector`."""

    BYTES = "bytes"
    HALFVEC = "halfvec"

    def pack(self, vector: Vectors) -> bytes | str:
        """Return a vector as it is written to the column, or compared with it."""
        half = vector.astype(_BYTES)
        if self is VectorFormat.BYTES:
            return half.tobytes()
        from pgvector import HalfVector  # noqa: PLC0415 - it imports numpy

        return HalfVector(half).to_text()

    def unpack(self, stored: bytes) -> Vectors:
        """Return a vector from what `readable` selects."""
        import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

        if self is VectorFormat.BYTES:
            return np.frombuffer(stored, _BYTES).astype(np.float32)
        return np.frombuffer(stored, _SENT, offset=_SENT_HEAD).astype(np.float32)

    def unpack_many(self, stored: list[bytes], dimensions: int) -> Vectors:
        """Return vectors as rows. All have to have that many dimensions."""
        import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

        if not stored:
            return np.empty((0, dimensions), np.float32)
        if self is VectorFormat.BYTES:
            flat = np.frombuffer(b"".join(stored), _BYTES)
            return flat.reshape(len(stored), dimensions).astype(np.float32)
        flat = np.frombuffer(b"".join(stored), _SENT)
        rows = flat.reshape(len(stored), dimensions + _SENT_HEAD // 2)
        return rows[:, _SENT_HEAD // 2 :].astype(np.float32)

    def size_of(self, stored: bytes) -> int:
        """Return how many dimensions a stored vector has."""
        head = 0 if self is VectorFormat.BYTES else _SENT_HEAD
        return (len(stored) - head) // 2

    @property
    def readable(self) -> sa.ColumnElement[Any]:
        """Return the column as bytes."""
        if self is VectorFormat.BYTES:
            return table_of(Embedding).c.vector
        return sa.func.halfvec_send(table_of(Embedding).c.vector)

    @property
    def insert(self) -> sa.TextClause:
        """Return the statement that adds a vector."""
        return _INSERT[self]


_INSERT = {
    VectorFormat.BYTES: sa.text(
        "INSERT INTO embeddings (chunk_id, sentence, vector) VALUES (:chunk_id, :sentence, :vector)"
    ),
    VectorFormat.HALFVEC: sa.text(
        "INSERT INTO embeddings (chunk_id, sentence, vector) "
        "VALUES (:chunk_id, :sentence, CAST(CAST(:vector AS text) AS halfvec))"
    ),
}


async def read_format(connection: AsyncConnection) -> VectorFormat:
    """Return the type of the column in this database."""
    if connection.dialect.name != "postgresql":
        return VectorFormat.BYTES
    found = await connection.scalar(_TYPE_OF_COLUMN)
    return VectorFormat.HALFVEC if str(found).endswith("halfvec") else VectorFormat.BYTES
