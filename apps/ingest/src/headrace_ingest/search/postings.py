"""Which chunks have a word. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace_ingest.search.words import Terms


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks of each word: those of `terms[i]` are `chunks[starts[i]:starts[i + 1]]`."""

    terms: Terms
    starts: npt.NDArray[np.int64]
    chunks: npt.NDArray[np.int32]

    @classmethod
    def of(cls, terms: Terms, chunks: npt.NDArray[np.int32]) -> Postings:
        """Return the postings of pairs of a word and a chunk."""
        order = np.argsort(terms, kind="stable")
        different, starts = np.unique(terms[order], return_index=True)
        return cls(different, np.append(starts, len(terms)).astype(np.int64), chunks[order])

    @classmethod
    def of_chunks(cls, terms: Sequence[Terms]) -> Postings:
        """Return the postings of the words of each chunk."""
        counts = [len(own) for own in terms]
        chunks = np.repeat(np.arange(len(terms), dtype=np.int32), counts)
        return cls.of(np.concatenate([np.empty(0, np.uint32), *terms]), chunks)

    def pairs(self) -> tuple[Terms, npt.NDArray[np.int32]]:
        """Return the pairs of a word and a chunk."""
        return np.repeat(self.terms, np.diff(self.starts)), self.chunks

    @property
    def size(self) -> int:
        """Return how many bytes of memory they take."""
        return self.terms.nbytes + self.starts.nbytes + self.chunks.nbytes

    def chunks_with(self, term: int) -> npt.NDArray[np.int32]:
        """Return the chunks that have a word."""
        place = int(np.searchsorted(self.terms, np.uint32(term)))
        if place == len(self.terms) or self.terms[place] != term:
            return self.chunks[:0]
        return self.chunks[self.starts[place] : self.starts[place + 1]]
