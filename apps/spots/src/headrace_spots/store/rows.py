"""From rows to plain data and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace import InvalidInput
from headrace_spots.store.records import (
    JudgedReview,
    RunStatus,
    SentenceVectors,
    Snapshot,
    Store,
    StoredReview,
)
from headrace_spots.store.tables import EMBEDDINGS, REVIEWS

INSERT_AT_ONCE = 500
_BYTES = "<f2"

Rows = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def snapshot_of(row: Mapping[Any, Any]) -> Snapshot:
    """Return a run."""
    values = _with_times(row)
    values["status"] = RunStatus(values["status"])
    return Snapshot(**values)


def store_of(row: Mapping[Any, Any]) -> Store:
    """Return a shop."""
    return Store(**_with_times(row))


def review_of(row: Mapping[Any, Any]) -> StoredReview:
    """Return a review."""
    values = {str(key): value for key, value in row.items() if key != "position"}
    return StoredReview(**values)


def _with_times(row: Mapping[Any, Any]) -> dict[str, Any]:
    values = {str(key): value for key, value in row.items()}
    for name in ("created_at", "updated_at"):
        values[name] = datetime.fromtimestamp(values[name], UTC)
    return values


def review_rows(run_id: str, reviews: Sequence[JudgedReview]) -> Rows:
    """Return the rows of reviews and of their vectors."""
    texts, vectors = [], []
    for position, each in enumerate(reviews):
        review = each.review
        texts.append(
            {
                "run_id": run_id,
                "review_id": review.review_id,
                "position": position,
                # PostgreSQL has no such letter.
                "text": review.text.replace("\0", " "),
                "rating": review.rating,
                "day": review.day,
                "url": review.url,
                "label": each.label,
                "score": float(each.score),
            }
        )
        if each.vectors is not None and len(each.vectors):
            vectors.append(
                {
                    "run_id": run_id,
                    "review_id": review.review_id,
                    "sentences": len(each.vectors),
                    "vectors": pack(each.vectors),
                }
            )
    return texts, vectors


async def insert_rows(connection: AsyncConnection, rows: Rows) -> None:
    """Store the rows of reviews, and of their vectors."""
    for table, values in ((REVIEWS, rows[0]), (EMBEDDINGS, rows[1])):
        for start in range(0, len(values), INSERT_AT_ONCE):
            await connection.execute(table.insert(), values[start : start + INSERT_AT_ONCE])


def pack(vectors: SentenceVectors) -> bytes:
    """Return vectors as they are stored."""
    return vectors.astype(_BYTES).tobytes()


def unpack(stored: bytes, sentences: int) -> SentenceVectors:
    """Return vectors from what is stored, one in each row."""
    return np.frombuffer(stored, _BYTES).reshape(sentences, -1).astype(np.float32)


def place_after(after: str) -> sa.Tuple:
    """Return the place at which a page ended."""
    created, _, store_id = after.partition("~")
    try:
        return sa.tuple_(sa.literal(float(created)), sa.literal(store_id))
    except ValueError:
        raise InvalidInput(f"cursor is {after[:80]!r}; use that of the page before") from None
