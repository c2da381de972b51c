"""Many vectors in little memory, and the nearest of them to one. No I/O.

A vector takes one byte a dimension, and one bit a dimension beside it. The bits choose candidates,
which takes a few milliseconds for half a million of them; the bytes then give the cosine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace_ingest.embedding.base import Vectors

Rows: TypeAlias = npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_]

# How many vectors are compared by all their bytes; `bench` says whether the best are among them.
CANDIDATES = 3000
_BLOCK = 65536
_FAR = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class NearestVectors:
    """Vectors of length 1: `small` times `scale` is each of them; `codes` are their signs."""

    small: npt.NDArray[np.int8]
    scale: npt.NDArray[np.float32]
    codes: npt.NDArray[np.uint64]
    """One row for each 64 dimensions, so that a row is read from end to end."""

    @classmethod
    def of(cls, vectors: Vectors) -> NearestVectors:
        """Return the same vectors, small."""
        largest = np.abs(vectors).max(axis=1, initial=0.0)
        scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
        small = np.rint(vectors / scale[:, None]).astype(np.int8)
        return cls(small, scale, _codes(vectors))

    @classmethod
    def joined(cls, parts: list[NearestVectors], kept: list[Mask]) -> NearestVectors:
        """Return the rows of all parts that are kept."""
        return cls(
            np.concatenate([part.small[rows] for part, rows in zip(parts, kept, strict=True)]),
            np.concatenate([part.scale[rows] for part, rows in zip(parts, kept, strict=True)]),
            np.concatenate(
                [part.codes[:, rows] for part, rows in zip(parts, kept, strict=True)], axis=1
            ),
        )

    def __len__(self) -> int:
        return len(self.scale)

    @property
    def size(self) -> int:
        """Return how many bytes of memory they take."""
        return self.small.nbytes + self.scale.nbytes + self.codes.nbytes

    def candidates(self, vector: Vectors, allowed: Mask | None, count: int) -> Rows:
        """Return the rows that are likely to be nearest, in no order."""
        if allowed is not None:
            rows = np.flatnonzero(allowed)
            if len(rows) <= count:
                return rows
        elif len(self) <= count:
            return np.arange(len(self))
        distance = self._distances(_codes(vector[None, :])[:, 0])
        if allowed is not None:
            distance[~allowed] = _FAR
        # Those at the same distance as the last one too. Counting is faster than sorting.
        within = np.cumsum(np.bincount(distance[distance != _FAR]))
        return np.flatnonzero(distance <= np.searchsorted(within, count))

    def cosines(self, vector: Vectors, rows: Rows) -> Vectors:
        """Return the cosine of each row and a vector."""
        return np.asarray((self.small[rows].astype(np.float32) @ vector) * self.scale[rows])

    def _distances(self, code: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
        """Return in how many signs each row differs."""
        total = np.zeros(len(self), np.uint16)
        # In blocks that stay in the cache of the processor.
        differing = np.empty(min(_BLOCK, len(self)), np.uint64)
        for start in range(0, len(self), _BLOCK):
            part = total[start : start + _BLOCK]
            for bits, own in zip(self.codes[:, start : start + _BLOCK], code, strict=True):
                different: Any = np.bitwise_xor(bits, own, out=differing[: len(part)])
                part += np.bitwise_count(different)
        return total


def _codes(vectors: Vectors) -> npt.NDArray[np.uint64]:
    """Return the signs of vectors as bits; dimensions are filled up to a multiple of 64."""
    missing = -vectors.shape[1] % 64
    positive = np.pad(vectors > 0, ((0, 0), (0, missing)))
    return np.ascontiguousarray(np.packbits(positive, axis=1).view(np.uint64).T)
