"""Search by pgvector, for vectors that do not fit into the memory of this process.

Every vector is compared by the server, which takes longer than in memory, but finds the nearest.
Words count among the nearest chunks alone, and all the same: how rare they are is not known.
"""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace_ingest.embedding import Vectors
from headrace_ingest.search.ranking import WORD_WEIGHT
from headrace_ingest.search.words import Terms, unpack
from headrace_ingest.store.vectors import VectorFormat

METHOD = "by pgvector, each compared: they do not fit into the memory that a search may take"
NEAREST = 500
# "0" follows "/": what is between them is below a path.
_NEAREST = sa.text(
    """
    WITH near AS (
        SELECT c.chunk_id, c.terms, min(e.vector <=> CAST(CAST(:vector AS text) AS halfvec)) AS best
        FROM embeddings e
        JOIN document_chunks c ON c.chunk_id = e.chunk_id
        JOIN documents d ON d.document_id = c.document_id
        WHERE d.status <> 'replaced' AND d.model = :model AND e.sentence > 0
          AND (:path = '/' OR d.path = :path OR (d.path >= :path || '/' AND d.path < :path || '0'))
        GROUP BY c.chunk_id
        ORDER BY best
        LIMIT :count
    )
    SELECT chunk_id, terms, best, (
        SELECT avg(e.vector) <=> CAST(CAST(:vector AS text) AS halfvec) FROM embeddings e
        WHERE e.chunk_id = near.chunk_id AND e.sentence > 0
    ) AS mean
    FROM near
    """
).bindparams(sa.bindparam("path", type_=sa.Text))


async def find_nearest(
    connection: AsyncConnection, model: str, path: str, terms: Terms, vector: Vectors
) -> dict[str, float]:
    """Return chunks within a path with their scores, the best first."""
    asked = {
        "vector": VectorFormat.HALFVEC.pack(vector),
        "model": model,
        "path": path,
        "count": NEAREST,
    }
    scores: dict[str, float] = {}
    for chunk_id, stored, best, mean in await connection.execute(_NEAREST, asked):
        having = np.intersect1d(unpack(stored), terms, assume_unique=True)
        meaning = 1 - (best + mean) / 2
        share = len(having) / max(len(terms), 1)
        scores[chunk_id] = float((meaning + WORD_WEIGHT * share) / (1 + WORD_WEIGHT))
    return dict(sorted(scores.items(), key=lambda each: (-each[1], each[0])))
