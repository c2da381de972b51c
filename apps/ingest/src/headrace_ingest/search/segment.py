"""Some documents, loaded for searching. Only `alive` changes after a segment was made. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headrace_ingest.embedding import WHOLE_CHUNK, Vectors
from headrace_ingest.search.nearest import Mask, NearestVectors
from headrace_ingest.search.postings import Postings
from headrace_ingest.search.words import Terms

# Sentences that have nothing in common: their mean says nothing, and must not be made long.
SHORTEST_MEAN = 0.2
_Number = TypeVar("_Number", np.int16, np.int32)


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    """A document as it comes from the tables. `vectors` are rows: of chunk `owners[i]`, sentence
    `numbers[i]`.
    """

    document_id: str
    path: str
    positions: Sequence[int]
    terms: Sequence[Terms]
    owners: Sequence[int]
    numbers: Sequence[int]
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks (document, position, words) and rows (chunk, sentence number, vector)."""

    documents: list[tuple[str, str]]
    """Id and path."""
    document_of: npt.NDArray[np.int32]
    position: npt.NDArray[np.int32]
    alive: Mask
    chunk_of: npt.NDArray[np.int32]
    number: npt.NDArray[np.int16]
    first_row: npt.NDArray[np.int64]
    nearest: NearestVectors
    postings: Postings
    length: Vectors
    """Of each chunk, the length of the mean of the vectors of its sentences."""

    @classmethod
    def of(cls, documents: Sequence[LoadedDocument], dimensions: int) -> Segment:
        """Return a segment of these documents."""
        counts = [len(document.positions) for document in documents]
        before = np.cumsum([0, *counts])
        empty = np.empty((0, dimensions), np.float32)
        owners = [
            np.asarray(document.owners, np.int32) + start
            for document, start in zip(documents, before, strict=False)
        ]
        return cls.made(
            documents=[(document.document_id, document.path) for document in documents],
            document_of=np.repeat(np.arange(len(documents), dtype=np.int32), counts),
            position=_joined([document.positions for document in documents], np.int32),
            chunk_of=_joined(owners, np.int32),
            number=_joined([document.numbers for document in documents], np.int16),
            nearest=NearestVectors.of(
                np.concatenate([empty, *(each.vectors for each in documents)])
            ),
            postings=Postings.of_chunks(
                [terms for document in documents for terms in document.terms]
            ),
            length=np.concatenate([empty[:, 0], *(_lengths(each) for each in documents)]),
        )

    @classmethod
    def made(
        cls,
        *,
        documents: list[tuple[str, str]],
        document_of: npt.NDArray[np.int32],
        position: npt.NDArray[np.int32],
        chunk_of: npt.NDArray[np.int32],
        number: npt.NDArray[np.int16],
        nearest: NearestVectors,
        postings: Postings,
        length: Vectors,
    ) -> Segment:
        """Return a segment; rows have to be in the order of their chunks."""
        first = np.searchsorted(chunk_of, np.arange(len(position) + 1)).astype(np.int64)
        alive = np.ones(len(position), np.bool_)
        return cls(
            documents,
            document_of,
            position,
            alive,
            chunk_of,
            number,
            first,
            nearest,
            postings,
            length,
        )

    @classmethod
    def merged(cls, segments: Sequence[Segment]) -> Segment:
        """Return one segment with what is alive in several."""
        documents: list[tuple[str, str]] = []
        parts: list[tuple[npt.NDArray[np.int32], ...]] = []
        words: list[Terms] = []
        owners: list[npt.NDArray[np.int32]] = []
        rows: list[Mask] = []
        chunks = 0
        for segment in segments:
            kept = np.flatnonzero(segment.alive)
            moved = np.full(len(segment.alive), -1, np.int32)
            moved[kept] = np.arange(chunks, chunks + len(kept))
            row = segment.alive[segment.chunk_of]
            used, document_of = np.unique(segment.document_of[kept], return_inverse=True)
            parts.append(
                (
                    (document_of + len(documents)).astype(np.int32),
                    segment.position[kept],
                    moved[segment.chunk_of[row]],
                )
            )
            documents += [segment.documents[place] for place in used]
            terms, owner = segment.postings.pairs()
            here = segment.alive[owner]
            words.append(terms[here])
            owners.append(moved[owner[here]])
            rows.append(row)
            chunks += len(kept)
        return cls.made(
            documents=documents,
            document_of=np.concatenate([part[0] for part in parts]),
            position=np.concatenate([part[1] for part in parts]),
            chunk_of=np.concatenate([part[2] for part in parts]),
            number=np.concatenate(
                [each.number[row] for each, row in zip(segments, rows, strict=True)]
            ),
            nearest=NearestVectors.joined([segment.nearest for segment in segments], rows),
            postings=Postings.of(np.concatenate(words), np.concatenate(owners)),
            length=np.concatenate([each.length[each.alive] for each in segments]),
        )

    @property
    def size(self) -> int:
        """Return how many bytes of memory it takes, names and paths apart."""
        arrays = (self.document_of, self.position, self.alive, self.chunk_of, self.number)
        own = sum(array.nbytes for array in arrays) + self.first_row.nbytes + self.length.nbytes
        return own + self.nearest.size + self.postings.size


def _lengths(document: LoadedDocument) -> Vectors:
    """Return the length of the mean of each chunk's sentences; 1 for one without any."""
    lengths = np.ones(len(document.positions), np.float32)
    rows = np.flatnonzero(np.asarray(document.numbers) != WHOLE_CHUNK)
    if len(rows):
        owners = np.asarray(document.owners)[rows]
        # The rows of a chunk follow each other.
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        counts = np.diff(np.append(starts, len(rows)))
        means = np.add.reduceat(document.vectors[rows], starts, axis=0) / counts[:, None]
        lengths[owners[starts]] = np.maximum(np.linalg.norm(means, axis=1), SHORTEST_MEAN)
    return lengths


def _joined(
    parts: Sequence[Sequence[int] | npt.NDArray[np.int32]], kind: type[_Number]
) -> npt.NDArray[_Number]:
    return np.concatenate([np.empty(0, kind), *(np.asarray(part, kind) for part in parts)])
