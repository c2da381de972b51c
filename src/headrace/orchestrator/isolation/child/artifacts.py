"""The files of a job as its handler in a child process sees them: chunks go to and fro."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import msgspec

from headrace.artifacts.content import CHUNK, save, source_of
from headrace.artifacts.index import check_media_type, check_metadata
from headrace.errors import EngineError
from headrace.model.artifact import Artifact, Artifacts, Content
from headrace.orchestrator.isolation.child.channel import ChildChannel
from headrace.orchestrator.isolation.protocol import (
    ArtifactChunk,
    ArtifactFind,
    ArtifactList,
    ArtifactPut,
    ArtifactRead,
)


class RemoteArtifacts(Artifacts):
    """The job's files, kept by the worker under its own token. Nothing large travels at once."""

    def __init__(self, channel: ChildChannel, run: int) -> None:
        self._channel = channel
        self._run = run

    async def put(
        self,
        name: str,
        data: Content,
        *,
        layer: str = "artifacts",
        media_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Keep a file with the job and answer its path. Refused once the lease is lost."""
        put = ArtifactPut(
            self._run,
            self._channel.number(),
            name,
            layer,
            check_media_type(media_type),
            check_metadata(metadata),
            # The worker is on this machine: it reads the file by itself.
            os.fsencode(data.absolute()) if isinstance(data, Path) else None,
        )
        if put.file is None:
            path = await self._send(put, source_of(data).chunks())
        else:
            path = await self._channel.ask(put)
        return (path or b"").decode()

    async def stream(
        self, name: str, *, layer: str = "artifacts", start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """A file in chunks. Of a whole one the checksum is compared at the end."""
        file = await self.find(name, layer=layer)
        whole = start == 0 and (end is None or end >= file.size)
        end = file.size if end is None else min(end, file.size)
        digest = hashlib.sha256() if whole and file.sha256 else None
        while start < end:
            stop = min(start + CHUNK, end)
            asked = ArtifactRead(self._run, self._channel.number(), file.path, start, stop)
            chunk = await self._channel.ask(asked) or b""
            if not chunk:
                raise EngineError(f"artifact {file.path} became shorter")
            start += len(chunk)
            if digest is not None:
                digest.update(chunk)
            yield chunk
        if digest is not None and digest.hexdigest() != file.sha256:
            raise EngineError(f"artifact {file.path} is damaged: its checksum differs")

    async def save(self, name: str, target: Path, *, layer: str = "artifacts") -> None:
        """Write a file to disk, whole or not at all."""
        await save(self.stream(name, layer=layer), target)

    async def find(self, name: str, *, layer: str = "artifacts") -> Artifact:
        """What is known about a file of this job, or about the one at a path."""
        found = await self._channel.ask(
            ArtifactFind(self._run, self._channel.number(), name, layer)
        )
        return msgspec.json.decode(found or b"", type=Artifact)

    async def list(self) -> list[Artifact]:
        """The files that this job has kept."""
        listed = await self._channel.ask(ArtifactList(self._run, self._channel.number()))
        return msgspec.json.decode(listed or b"[]", type=list[Artifact])

    async def _send(self, put: ArtifactPut, chunks: AsyncGenerator[bytes, None]) -> bytes | None:
        """One chunk after the other, each when the worker has taken the last."""
        answer = asyncio.ensure_future(self._channel.ask(put))
        await asyncio.sleep(0)  # the question goes first
        try:
            async for chunk in chunks:
                for start in range(0, len(chunk), CHUNK):
                    await self._chunk(put, chunk[start : start + CHUNK])
                if answer.done():
                    break  # refused: there is no need for the rest
            await self._chunk(put, b"")
        except BaseException:
            # What was sent so far must not become a file.
            self._channel.send(
                ArtifactChunk(self._run, self._channel.number(), put.number, b"", broken=True)
            )
            with contextlib.suppress(Exception):
                await asyncio.shield(answer)
            raise
        finally:
            await chunks.aclose()
        return await answer

    async def _chunk(self, put: ArtifactPut, data: bytes) -> None:
        await self._channel.ask(ArtifactChunk(self._run, self._channel.number(), put.number, data))
