"""Features of texts as numbers of buckets: n-grams of characters or of words, hashed.

A block has, for each text, the buckets that occur in it. They are counted once each, and weigh
1/sqrt(number of them), so that a long text does not shout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float32]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Block(NamedTuple):
    """The features of some texts: those of text `i` are `buckets[starts[i]:starts[i + 1]]`."""

    starts: Numbers
    buckets: Numbers

    @property
    def values(self) -> Floats:
        """Return what each feature weighs in its text."""
        counts = np.diff(self.starts)
        return np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)

    @property
    def rows(self) -> Numbers:
        """Return the number of the text of each feature."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def character_ngrams(texts: Sequence[str], shortest: int, longest: int, bits: int) -> Block:
    """Return the n-grams of the characters of each text, spaces and both ends among them."""
    codes = [np.frombuffer(f" {text} ".encode("utf-32-le"), dtype="<u4") for text in texts]
    lengths = np.array([len(code) for code in codes], dtype=np.int64)
    flat = np.concatenate(codes).astype(np.uint64) if codes else np.empty(0, np.uint64)
    rows = np.repeat(np.arange(len(codes)), lengths)
    ends = np.repeat(np.cumsum(lengths), lengths)
    places = np.arange(len(flat))
    found_rows, found = [], []
    hashed = np.zeros(len(flat), np.uint64)
    for length in range(1, longest + 1):
        # The hash of a longer n-gram continues that of the shorter one at the same place.
        inside = places + length <= ends
        hashed = hashed[: len(flat) - length + 1]
        hashed = _mixed(hashed + flat[length - 1 :][: len(hashed)] + np.uint64(length))
        if length >= shortest:
            kept = inside[: len(hashed)]
            found_rows.append(rows[: len(hashed)][kept])
            found.append(hashed[kept] >> np.uint64(64 - bits))
    return _block(found_rows, found, len(texts), bits)


def word_ngrams(texts: Sequence[Sequence[str]], longest: int, bits: int) -> Block:
    """Return the n-grams of the words of each text."""
    rows: list[int] = []
    hashes: list[int] = []
    for row, words in enumerate(texts):
        for length in range(1, longest + 1):
            for begin in range(len(words) - length + 1):
                joined = "\x1f".join(words[begin : begin + length])
                hashes.append(crc32(joined.encode("utf-8", "replace")))
                rows.append(row)
    mixed = _mixed(np.array(hashes, dtype=np.uint64)) >> np.uint64(64 - bits)
    return _block([np.array(rows, dtype=np.int64)], [mixed], len(texts), bits)


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = values * _MULTIPLIER
    return (mixed ^ (mixed >> _SHIFT)) * _MULTIPLIER


def _block(
    rows: Sequence[Numbers], buckets: Sequence[npt.NDArray[np.uint64]], texts: int, bits: int
) -> Block:
    if not rows:
        return Block(np.zeros(texts + 1, np.int64), np.empty(0, np.int64))
    pairs = np.concatenate(rows) << bits | np.concatenate(buckets).astype(np.int64)
    pairs = np.unique(pairs)
    starts = np.searchsorted(pairs, np.arange(texts + 1, dtype=np.int64) << bits)
    return Block(starts, pairs & ((1 << bits) - 1))
