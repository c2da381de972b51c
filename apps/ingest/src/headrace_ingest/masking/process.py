"""Mask documents with the help of a process of its own, which has the dictionary in its memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from headrace import BUGS
from headrace_ingest.chunking import Chunk
from headrace_ingest.masking.child import Asked, Found
from headrace_ingest.masking.mask import MaskedChunks, apply_to_chunks, mask_chunks
from headrace_ingest.processes import ChildProcess

MODULE = "headrace_ingest.masking.child"
PIECE = 1 << 20


class MaskingFailed(Exception):
    """The process has ended, or could not mask a text."""


class Masker:
    """Masks one document after the other. Without `names` no process is needed."""

    def __init__(self, *, names: bool = True) -> None:
        self._names = names
        self._free = asyncio.Lock()
        self._child: ChildProcess | None = None

    async def mask(self, text: str, chunks: Sequence[Chunk]) -> MaskedChunks:
        """Return the chunks of a text, masked, as `mask_chunks` does."""
        if not self._names:
            return await asyncio.to_thread(mask_chunks, text, chunks, names=False)
        encoded = text.encode("utf-8")
        async with self._free:
            child, self._child = self._child, None
            try:
                if child is None or not child.is_alive:
                    child = await ChildProcess.start(MODULE)
                header = msgspec.json.encode(Asked(size=len(encoded)))
                answer = await child.ask(header, _pieces(encoded))
                self._child = child
            except (asyncio.IncompleteReadError, ConnectionError):
                raise MaskingFailed("the program that masks it ended") from None
            finally:
                # Also if this document was given up: what it still does would hold up the next.
                if self._child is None and child is not None:
                    await child.kill()
        found = msgspec.json.decode(answer, type=Found)
        if found.error is not None:
            kinds = {kind.__name__: kind for kind in BUGS}
            raise kinds.get(found.error, MaskingFailed)(found.error)
        return await asyncio.to_thread(apply_to_chunks, chunks, found.spans)

    async def close(self) -> None:
        """End the process."""
        if self._child is not None:
            await self._child.kill()


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE):
        yield content[start : start + PIECE]
