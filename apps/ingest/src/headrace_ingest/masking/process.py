"""Mask documents with the help of a process of its own, which has the dictionary in its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from headrace_ingest.chunking import Chunk
from headrace_ingest.masking.child import Asked, Found
from headrace_ingest.masking.mask import MaskedChunks, apply_to_chunks, mask_chunks
from headrace_ingest.processes import KeptProcess, raise_told

MODULE = "headrace_ingest.masking.child"


class MaskingFailed(Exception):
    """The process has ended, or could not mask a text."""


class Masker:
    """Masks one document after the other. Without `names` no process is needed."""

    def __init__(self, *, names: bool = True) -> None:
        self._names = names
        self._process = KeptProcess(MODULE)

    async def mask(self, text: str, chunks: Sequence[Chunk]) -> MaskedChunks:
        """Return the chunks of a text, masked, as `mask_chunks` does."""
        if not self._names:
            return await asyncio.to_thread(mask_chunks, text, chunks, names=False)
        encoded = text.encode("utf-8")
        try:
            answer = await self._process.ask(msgspec.json.encode(Asked(size=len(encoded))), encoded)
        except ConnectionError:
            raise MaskingFailed("the program that masks it ended") from None
        found = msgspec.json.decode(answer, type=Found)
        if found.error is not None:
            raise_told(found.error, found.error, MaskingFailed)
        return await asyncio.to_thread(apply_to_chunks, chunks, found.spans)

    async def close(self) -> None:
        """End the process."""
        await self._process.close()
