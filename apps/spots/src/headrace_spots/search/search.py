"""The search over the reviews of the last completed run of each shop.

Vectors are compared one by one, exactly, in memory: those of a shop are read when it is first asked
for, and kept until its next run or until others need the memory.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import InvalidInput
from headrace_spots.embedding import SentenceEncoder, split_sentences
from headrace_spots.store.records import SentenceVectors, StoredReview
from headrace_spots.store.rows import review_of, unpack
from headrace_spots.store.tables import EMBEDDINGS, REVIEWS, STORES
from headrace_spots.views import ReviewHit

LONGEST_QUESTION = 500
MOST_HITS = 100
# A word of the question that stands in the review counts a little beside the meaning.
WORD_WEIGHT = 0.12
# So many reviews of each shop are looked at closely.
CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class _Index:
    """The sentences of one run."""

    review_ids: list[str]
    numbers: list[int]
    vectors: SentenceVectors

    @property
    def size(self) -> int:
        return int(self.vectors.nbytes) + 200 * len(self.review_ids)


class ReviewSearch:
    """Searches one database."""

    def __init__(self, engine: AsyncEngine, encoder: SentenceEncoder, *, memory_bytes: int) -> None:
        self._engine = engine
        self._encoder = encoder
        self._memory = memory_bytes
        self._indexes: OrderedDict[str, _Index] = OrderedDict()
        self._lock = asyncio.Lock()

    async def search(self, question: str, store_id: str | None, k: int) -> list[ReviewHit]:
        """Return the `k` reviews that answer a question best, each found by its best sentence.
        Raises `InvalidInput`.
        """
        question = " ".join(question.split())
        if not question or len(question) > LONGEST_QUESTION:
            raise InvalidInput(f"q has {len(question)} characters; give 1 to {LONGEST_QUESTION}")
        if not 1 <= k <= MOST_HITS:
            raise InvalidInput(f"k is {k}; give 1 to {MOST_HITS}")
        shops = await self._shops(store_id)
        if not shops:
            return []
        vector = (await self._encoder.encode([question], 1))[0]
        hits: list[ReviewHit] = []
        for run_id, store, name in shops:
            index = await self._index(run_id)
            best = await asyncio.to_thread(_best, index, vector, max(CANDIDATES, k))
            reviews = await self._read(run_id, list(best))
            hits += [_hit(each, store, name, best, question) for each in reviews]
        hits.sort(key=lambda hit: -hit.score)
        # What many have written word for word is shown once for each shop.
        once = {(hit.store_id, hit.sentence.casefold()): hit for hit in reversed(hits)}
        return sorted(once.values(), key=lambda hit: -hit.score)[:k]

    async def reviews(
        self, store_id: str, *, label: str | None, limit: int, offset: int
    ) -> list[StoredReview]:
        """Return reviews of a shop, the newest first."""
        query = _reviews().where(STORES.c.store_id == store_id)
        if label is not None:
            query = query.where(REVIEWS.c.label == label)
        query = query.order_by(sa.func.coalesce(REVIEWS.c.day, "").desc(), REVIEWS.c.position)
        async with self._engine.connect() as connection:
            rows = await connection.execute(query.limit(limit).offset(offset))
            return [review_of(row) for row in rows.mappings()]

    async def _shops(self, store_id: str | None) -> list[tuple[str, str, str | None]]:
        query = sa.select(STORES.c.run_id, STORES.c.store_id, STORES.c.name).where(
            STORES.c.run_id.is_not(None)
        )
        if store_id is not None:
            query = query.where(STORES.c.store_id == store_id)
        async with self._engine.connect() as connection:
            return [(row[0], row[1], row[2]) for row in await connection.execute(query)]

    async def _index(self, run_id: str) -> _Index:
        async with self._lock:
            found = self._indexes.get(run_id)
            if found is None:
                query = sa.select(
                    EMBEDDINGS.c.review_id, EMBEDDINGS.c.sentences, EMBEDDINGS.c.vectors
                ).where(EMBEDDINGS.c.run_id == run_id)
                async with self._engine.connect() as connection:
                    rows = [(row[0], row[1], row[2]) for row in await connection.execute(query)]
                found = await asyncio.to_thread(_make, rows)
                self._indexes[run_id] = found
            self._indexes.move_to_end(run_id)
            while len(self._indexes) > 1 and self._used() > self._memory:
                self._indexes.popitem(last=False)
            return found

    def _used(self) -> int:
        return sum(each.size for each in self._indexes.values())

    async def _read(self, run_id: str, review_ids: Sequence[str]) -> list[StoredReview]:
        query = _reviews().where(REVIEWS.c.run_id == run_id, REVIEWS.c.review_id.in_(review_ids))
        async with self._engine.connect() as connection:
            return [review_of(row) for row in (await connection.execute(query)).mappings()]


def _reviews() -> sa.Select[tuple[object, ...]]:
    columns = [each for each in REVIEWS.c if each.name != "position"]
    return sa.select(*columns, STORES.c.store_id).join(STORES, STORES.c.run_id == REVIEWS.c.run_id)


def _make(rows: Sequence[tuple[str, int, bytes]]) -> _Index:
    ids = [review_id for review_id, count, _ in rows for _ in range(count)]
    numbers = [number for _, count, _ in rows for number in range(count)]
    parts = [unpack(stored, count) for _, count, stored in rows]
    empty = np.empty((0, 1), np.float32)
    return _Index(ids, numbers, np.concatenate(parts) if parts else empty)


def _best(index: _Index, vector: SentenceVectors, count: int) -> dict[str, tuple[float, int]]:
    """Return the reviews whose best sentence is nearest: score and number of the sentence."""
    if not index.review_ids:
        return {}
    scores = index.vectors @ vector
    best: dict[str, tuple[float, int]] = {}
    for place in np.argsort(-scores):
        best.setdefault(index.review_ids[place], (float(scores[place]), index.numbers[place]))
        if len(best) >= count:
            break
    return best


def _hit(
    review: StoredReview,
    store_id: str,
    name: str | None,
    best: dict[str, tuple[float, int]],
    question: str,
) -> ReviewHit:
    score, number = best[review.review_id]
    sentences = split_sentences(review.text)
    words = [each for each in question.casefold().split() if len(each) > 1]
    text = review.text.casefold()
    share = sum(each in text for each in words) / len(words) if words else 0.0
    return ReviewHit(
        store_id=store_id,
        run_id=review.run_id,
        review_id=review.review_id,
        shop=name,
        text=review.text,
        sentence=sentences[number] if number < len(sentences) else review.text,
        score=round(score + WORD_WEIGHT * share, 4),
        rating=review.rating,
        day=review.day,
        label=review.label,
        url=review.url,
    )
