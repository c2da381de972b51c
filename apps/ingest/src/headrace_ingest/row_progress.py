"""Show the stage and progress of an attempt in the row of its document.

Stages of a short document take milliseconds, and each write is a transaction: so a row is written
at most every `PAUSE_SECONDS`, and what is newest wins; the beginning of the attempt is a write too.
The last one shown is always written, unless the attempt ends first, which writes the row itself.
"""

from __future__ import annotations

import asyncio
import contextlib

from headrace_ingest.store.records import Outcome
from headrace_ingest.store.repository import Repository

PAUSE_SECONDS = 1.0


class RowProgress:
    """The stage and progress of one attempt. Use it with `async with`: nothing is written after."""

    def __init__(self, repository: Repository, document_id: str, token: int) -> None:
        self._repository = repository
        self._document_id = document_id
        self._token = token
        self._newest: tuple[str, int] | None = None
        self._outcome = Outcome.STORED
        self._failed: Exception | None = None
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> RowProgress:
        self._writer = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def show(self, stage: str, progress: int) -> Outcome:
        """Show this from now on. Returns what the last write has found: the document may be gone,
        or another attempt may be at work on it. Raises what went wrong with it.
        """
        if self._failed is not None:
            raise self._failed
        self._newest = (stage, progress)
        self._changed.set()
        return self._outcome

    async def close(self) -> None:
        """Write nothing more; a write that has begun is waited for. Closing twice is fine."""
        self._ended.set()
        self._changed.set()
        if self._writer is not None:
            writer, self._writer = self._writer, None
            await writer

    async def _write(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), PAUSE_SECONDS)
            await self._changed.wait()
            self._changed.clear()
            if self._ended.is_set() or self._newest is None:
                continue
            shown, self._newest = self._newest, None
            try:
                self._outcome = await self._repository.show(self._document_id, self._token, *shown)
            except Exception as error:
                self._failed = error
                return
