"""The one door to artifacts: checked paths, checksums, chunks, and patience with the store."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from typing import TypeVar

import msgspec

from headrace.artifacts.backend import Backend
from headrace.artifacts.content import CHUNK, Source, source_of
from headrace.artifacts.names import check_path
from headrace.errors import EngineError, EngineUnavailable
from headrace.model.artifact import Content
from headrace.model.ids import parse_id

T = TypeVar("T")

# Between tries while the store is away: some 15 seconds in all, then the error is raised.
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
READ_CHUNK = 4 * CHUNK
# Below this a hash takes less time than a thread.
SMALL = 65_536


class Stored(msgspec.Struct, frozen=True):
    """A file as it was kept. `sha256` is the checksum of its content, in hexadecimal."""

    path: str
    size: int
    sha256: str


class ArtifactStore:
    """Files of jobs, in a folder or a bucket. Any size goes through in bounded memory.

    While the store is away, what can be tried again is, for a while; then `EngineUnavailable` is
    raised. A file is visible whole or not at all.
    """

    def __init__(self, backend: Backend, *, pauses: tuple[float, ...] = PAUSES) -> None:
        self.backend = backend
        self.pauses = pauses

    def __repr__(self) -> str:
        return f"<ArtifactStore {self.where}>"

    @property
    def where(self) -> str:
        """The folder or the bucket, without secrets."""
        return self.backend.where

    async def put(self, path: str, content: Content, *, media_type: str | None = None) -> Stored:
        """Keep a file and return its path, size and checksum. The path may differ from what was
        asked for where that one is taken by a folder.
        """
        check_path(path)
        source = source_of(content)

        async def write() -> Stored:
            measured = _Measured(source)
            kept = await self.backend.write(
                path, measured.chunks(), size=source.size, media_type=media_type
            )
            return Stored(kept, measured.size, measured.digest.hexdigest())

        # A stream that has been read in part cannot be read again.
        return await (self._patiently(write) if source.repeatable else write())

    async def size(self, path: str) -> int:
        """How many bytes a file has. Raises `ArtifactNotFound`."""
        check_path(path)
        return await self._patiently(lambda: self.backend.size(path))

    async def read(self, path: str, start: int, end: int) -> bytes:
        """Some bytes of a file, up to `end`, at once."""
        check_path(path)
        if not start < end:
            return b""
        return await self._patiently(lambda: self.backend.read(path, start, end))

    async def stream(
        self, path: str, *, start: int = 0, end: int | None = None, sha256: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """A file, or a part of it, in chunks. The next is on its way while one is used.

        With `sha256` the checksum of the whole is compared after the last chunk: `EngineError` is
        raised if the file is not what was kept.
        """
        size = await self.size(path)
        whole = start == 0 and (end is None or end >= size)
        end = size if end is None else min(end, size)
        digest = hashlib.sha256() if sha256 is not None and whole else None
        ahead = None if start >= end else self._ahead(path, start, end)
        try:
            while ahead is not None:
                chunk = await ahead
                if not chunk:
                    raise EngineError(f"artifact {path} in {self.where} became shorter")
                start += len(chunk)
                ahead = None if start >= end else self._ahead(path, start, end)
                if digest is not None:
                    await _update(digest, chunk)
                yield chunk
        finally:
            if ahead is not None:
                ahead.cancel()
        if digest is not None and digest.hexdigest() != sha256:
            raise EngineError(
                f"artifact {path} in {self.where} is damaged: its checksum is "
                f"{digest.hexdigest()}, and {sha256} when it was kept"
            )

    async def get(self, path: str, *, sha256: str | None = None) -> bytes:
        """A whole file at once."""
        return b"".join([chunk async for chunk in self.stream(path, sha256=sha256)])

    async def remove(self, path: str) -> None:
        """Remove a file; it is fine if it is gone."""
        check_path(path)
        await self._patiently(lambda: self.backend.remove(path))

    async def remove_job(self, job_id: str, spare: Collection[str] = ()) -> None:
        """Remove every file of a job, in all layers, except the paths to `spare`; it is fine if
        some or all are gone.
        """
        checked = parse_id(job_id)
        await self._patiently(lambda: self.backend.remove_job(checked, spare))

    async def tidy(self, older_than: float = 86_400.0) -> None:
        """Remove what writers that were killed long ago have left half-written."""
        await self.backend.tidy(older_than)

    async def check(self) -> None:
        """Raise if the store cannot be used as it is now, without waiting for it."""
        await self.backend.check()

    def _ahead(self, path: str, start: int, end: int) -> asyncio.Task[bytes]:
        stop = min(start + READ_CHUNK, end)
        return asyncio.create_task(self.read(path, start, stop))

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        for pause in self.pauses:
            try:
                return await call()
            except EngineUnavailable:
                # Spread, so that many jobs do not all come back at once.
                await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311
        return await call()


class _Measured:
    """Counts and hashes what goes by."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = 0
        self.digest = hashlib.sha256()

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._source.chunks():
            self.size += len(chunk)
            await _update(self.digest, chunk)
            yield chunk


async def _update(digest: hashlib._Hash, chunk: bytes) -> None:
    if len(chunk) <= SMALL:
        digest.update(chunk)
    else:
        await asyncio.to_thread(digest.update, chunk)
