"""The worker's side of a child's files: everything goes through the worker's context and token."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from headrace.errors import HeadraceError
from headrace.model.artifact import Artifact, Artifacts, KeptFile
from headrace.orchestrator.isolation.protocol import ArtifactOptions

Chunks = asyncio.Queue[bytes | None]


class ArtifactServer:
    """Calls the job's `Artifacts` for a child. A file is sent in chunks: begin, write …, end.

    `start` runs a coroutine as a task that ends with the attempt.
    """

    def __init__(
        self,
        artifacts: Artifacts,
        start: Callable[[Coroutine[Any, Any, str]], asyncio.Task[str]],
    ) -> None:
        self._artifacts = artifacts
        self._start = start
        self._uploads: dict[int, tuple[Chunks, asyncio.Task[str]]] = {}

    async def find(self, name: str, layer: str) -> Artifact:
        return await self._artifacts.find(name, layer=layer)

    async def list(self) -> list[Artifact]:
        return await self._artifacts.list()

    async def keep(self, name: str, layer: str, owner: str, reason: str) -> KeptFile:
        return await self._artifacts.keep(name, layer=layer, owner=owner, reason=reason)

    async def read(self, path: str, start: int, end: int) -> bytes:
        stream = self._artifacts.stream(path, start=start, end=end)
        return b"".join([chunk async for chunk in stream])

    async def put_file(self, file: bytes, options: ArtifactOptions) -> str:
        """Put a file that the worker reads by itself, being on the same machine."""
        return await self._artifacts.put(data=Path(os.fsdecode(file)), **asdict(options))

    async def begin_put(self, upload: int, options: ArtifactOptions) -> None:
        """Begin to put what follows in chunks. `upload` is a number of the child's choice."""
        chunks: Chunks = asyncio.Queue(1)
        put = self._artifacts.put(data=_received(chunks), **asdict(options))
        self._uploads[upload] = chunks, self._start(put)

    async def write(self, upload: int, chunk: bytes | None) -> bool:
        """Pass a chunk on, once the one before has been taken. b"" ends the file, None undoes it.

        Return False if no more is wanted, because the store has refused the file.
        """
        if upload not in self._uploads:
            raise HeadraceError(f"file {upload} was never begun, or has ended")
        chunks, put = self._uploads[upload]
        passing_on = asyncio.ensure_future(chunks.put(chunk))
        try:
            await asyncio.wait({passing_on, put}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            passing_on.cancel()
        return not put.done()

    async def end_put(self, upload: int, whole: bool) -> str:
        """Return the path of the file. If it is not `whole`, nothing is stored."""
        await self.write(upload, b"" if whole else None)
        _, put = self._uploads.pop(upload)
        return await put


async def _received(chunks: Chunks) -> AsyncGenerator[bytes, None]:
    while chunk := await chunks.get():
        yield chunk
    if chunk is None:
        raise HeadraceError("the handler's own stream ended with an error")
