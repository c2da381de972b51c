"""The ranking: a chunk by its meaning, and a small score for its words. No I/O.

    meaning = (cosine of the best sentence + cosine of the mean of all its sentences) / 2
    score = (meaning + w * share of the question's words) / (1 + w)

The best sentence alone is often one that stands among others about something else. Rare words
count more than frequent ones (by their inverse document frequency). Meaning and words are added,
not ranked apart: a chunk that is far ahead by one of them stays ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace_ingest.embedding import WHOLE_CHUNK, Vectors
from headrace_ingest.search.nearest import CANDIDATES, Mask
from headrace_ingest.search.segment import Segment
from headrace_ingest.search.words import Terms

Mode: TypeAlias = Literal["default", "words", "chunk"]
MODES: tuple[Mode, ...] = ("default", "words", "chunk")

WORD_WEIGHT = np.float32(0.5)
# Chunks that are compared because of their words, whatever their vectors are.
WORD_CANDIDATES = 150
# Of a small segment.
FEWEST_CANDIDATES = 300
# The mean of a chunk's sentences is taken for one of so many candidates, and for so many chunks for
# each that is wanted.
MEANS_SHARE = 10
MEANS_FOR_EACH = 3


class Found(NamedTuple):
    """A chunk of a segment, and its score from 0 (or a little less) to 1."""

    segment: Segment
    chunk: int
    score: float

    @property
    def document_id(self) -> str:
        """Return the document that it is a part of."""
        document_id, _ = self.segment.documents[int(self.segment.document_of[self.chunk])]
        return document_id

    @property
    def position(self) -> int:
        """Return which part it is."""
        return int(self.segment.position[self.chunk])


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for."""

    terms: Terms
    vector: Vectors | None
    mode: Mode
    count: int
    candidates: int = CANDIDATES
    """How many vectors are compared exactly."""


def rank(
    segments: Sequence[Segment],
    question: Question,
    allowed: Callable[[Segment], Mask | None],
) -> list[Found]:
    """Return the best chunks, the best first. `allowed` returns the chunks of a segment that may
    be found, None for all.
    """
    weights = _weights(segments, question.terms)
    total = sum(len(segment.nearest) for segment in segments) or 1
    found: list[Found] = []
    for segment in segments:
        share = question.candidates * len(segment.nearest) // total
        own = replace(question, candidates=max(share, FEWEST_CANDIDATES))
        chunks, scores = _best(segment, own, weights, allowed(segment))
        found += [
            Found(segment, int(chunk), float(score))
            for chunk, score in zip(chunks, scores, strict=True)
        ]
    # Equal scores in an order that every process has.
    found.sort(key=lambda each: (-each.score, each.document_id, each.position))
    return found[: question.count]


def _weights(segments: Sequence[Segment], terms: Terms) -> list[tuple[int, float]]:
    """Return the words with their share of the question; together they are 1."""
    total = sum(len(segment.position) for segment in segments)
    rarity: list[tuple[int, float]] = []
    for term in terms.tolist():
        having = sum(len(segment.postings.chunks_with(term)) for segment in segments)
        rarity.append((term, float(np.log(1 + (total - having + 0.5) / (having + 0.5)))))
    whole = sum(weight for _, weight in rarity) or 1.0
    return [(term, weight / whole) for term, weight in rarity]


def _best(
    segment: Segment, question: Question, weights: list[tuple[int, float]], allowed: Mask | None
) -> tuple[npt.NDArray[np.intp], Vectors]:
    """Return the best chunks of a segment with their scores, in no order."""
    words = np.zeros(len(segment.position), np.float32)
    if question.mode != "chunk":
        for term, weight in weights:
            words[segment.postings.chunks_with(term)] += np.float32(weight)
        if allowed is not None:
            words[~allowed] = 0
    by_words = np.flatnonzero(words)
    by_words = by_words[_largest(words[by_words], max(WORD_CANDIDATES, question.count))]
    if question.mode == "words" or question.vector is None:
        return _cut(by_words, words[by_words], question.count)
    near, cosines = _nearest(segment, question, question.vector, allowed)
    if question.mode == "chunk":
        return _cut(near, cosines, question.count)
    missing = np.setdiff1d(by_words, near)
    chunks = np.concatenate([near, missing])
    best = np.concatenate([cosines, _meaning(segment, question.vector, missing)[0]])
    # The mean takes all sentences of a chunk: for the first by the best sentence and words alone.
    wanted = max(question.candidates // MEANS_SHARE, MEANS_FOR_EACH * question.count)
    first = _largest(best + WORD_WEIGHT * words[chunks], wanted)
    chunks = chunks[first]
    meaning = sum(_meaning(segment, question.vector, chunks)) / np.float32(2)
    scores = ((meaning + WORD_WEIGHT * words[chunks]) / (1 + WORD_WEIGHT)).astype(np.float32)
    return _cut(chunks, scores, question.count)


def _nearest(
    segment: Segment, question: Question, vector: Vectors, allowed: Mask | None
) -> tuple[npt.NDArray[np.intp], Vectors]:
    """Return the chunks that are nearest, each with the cosine of its nearest vector."""
    rows = None if allowed is None else allowed[segment.chunk_of]
    whole = segment.number == WHOLE_CHUNK
    if question.mode == "chunk" or whole.any():
        fitting = whole if question.mode == "chunk" else ~whole
        rows = fitting if rows is None else rows & fitting
    near = segment.nearest.candidates(vector, rows, question.candidates)
    cosines = segment.nearest.cosines(vector, near)
    chunks, place = np.unique(segment.chunk_of[near], return_inverse=True)
    best = np.full(len(chunks), -1, np.float32)
    np.maximum.at(best, place, cosines)
    return chunks.astype(np.intp), best


def _meaning(
    segment: Segment, vector: Vectors, chunks: npt.NDArray[np.intp]
) -> tuple[Vectors, Vectors]:
    """Return how near these chunks are by their best sentence, and by the mean of all; 0 for one
    without any.
    """
    first = segment.first_row[chunks]
    counts = segment.first_row[chunks + 1] - first
    place = np.repeat(np.arange(len(chunks)), counts)
    # The rows of a chunk follow each other.
    rows = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
    fitting = segment.number[rows] != WHOLE_CHUNK
    place, cosines = place[fitting], segment.nearest.cosines(vector, rows[fitting])
    best = np.full(len(chunks), -1, np.float32)
    np.maximum.at(best, place, cosines)
    best[best == -1] = 0
    sums = np.bincount(place, weights=cosines, minlength=len(chunks))
    sentences = np.maximum(np.bincount(place, minlength=len(chunks)), 1)
    mean = sums / sentences / segment.length[chunks]
    return best, mean.astype(np.float32)


def _largest(values: Vectors, count: int) -> npt.NDArray[np.intp]:
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, -count)[-count:]


def _cut(
    chunks: npt.NDArray[np.intp], scores: Vectors, count: int
) -> tuple[npt.NDArray[np.intp], Vectors]:
    best = _largest(scores, count)
    return chunks[best], scores[best]
