"""The files of a job as its handler in a child process sees them: sent and read in chunks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import msgspec

from headrace.artifacts.content import CHUNK, save, source_of
from headrace.artifacts.index import check_media_type, check_metadata
from headrace.errors import EngineError
from headrace.model.artifact import Artifact, Artifacts, Content, KeptFile
from headrace.orchestrator.isolation.child.channel import ChildChannel
from headrace.orchestrator.isolation.protocol import ArtifactOptions


class RemoteArtifacts(Artifacts):
    """The job's files, stored by the worker under its own token. Nothing large is sent at once."""

    def __init__(self, channel: ChildChannel, run: int) -> None:
        self._channel = channel
        self._run = run
        self._ask = functools.partial(channel.ask, run)

    async def put(
        self,
        name: str,
        data: Content,
        *,
        layer: str = "artifacts",
        media_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        options = ArtifactOptions(
            name, layer, check_media_type(media_type), check_metadata(metadata)
        )
        if isinstance(data, Path):
            # The worker is on this machine: it reads the file by itself.
            path = await self._ask("put_file", os.fsencode(data.absolute()), options)
        else:
            path = await self._send(source_of(data).chunks(), options)
        return msgspec.json.decode(path, type=str)

    async def stream(
        self, name: str, *, layer: str = "artifacts", start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield a file in chunks. The checksum of a whole one is compared at the end."""
        file = await self.find(name, layer=layer)
        whole = start == 0 and (end is None or end >= file.size)
        end = file.size if end is None else min(end, file.size)
        digest = hashlib.sha256() if whole and file.sha256 else None
        while start < end:
            chunk = await self._ask("read_artifact", file.path, start, min(start + CHUNK, end))
            if not chunk:
                raise EngineError(f"artifact {file.path} became shorter")
            start += len(chunk)
            if digest is not None:
                digest.update(chunk)
            yield chunk
        if digest is not None and digest.hexdigest() != file.sha256:
            raise EngineError(f"artifact {file.path} is damaged: its checksum differs")

    async def save(self, name: str, target: Path, *, layer: str = "artifacts") -> None:
        await save(self.stream(name, layer=layer), target)

    async def find(self, name: str, *, layer: str = "artifacts") -> Artifact:
        return msgspec.json.decode(await self._ask("find_artifact", name, layer), type=Artifact)

    async def keep(
        self, name: str, *, owner: str, reason: str = "", layer: str = "artifacts"
    ) -> KeptFile:
        kept = await self._ask("keep_artifact", name, layer, owner, reason)
        return msgspec.json.decode(kept, type=KeptFile)

    async def list(self) -> list[Artifact]:
        return msgspec.json.decode(await self._ask("list_artifacts"), type=list[Artifact])

    async def _send(self, chunks: AsyncGenerator[bytes, None], options: ArtifactOptions) -> bytes:
        """Send one chunk after the other, each when the worker has room for it."""
        upload = self._channel.number()
        self._channel.tell(self._run, "begin_put", upload, options)
        try:
            async for chunk in chunks:
                for start in range(0, len(chunk), CHUNK):
                    wanted = await self._ask("write_put", upload, chunk[start : start + CHUNK])
                    if wanted == b"false":  # refused: `end_put` raises why
                        return await self._ask("end_put", upload, True)
            return await self._ask("end_put", upload, True)
        except BaseException:
            # What was sent so far must not become a file.
            with contextlib.suppress(Exception):
                await asyncio.shield(asyncio.ensure_future(self._ask("end_put", upload, False)))
            raise
        finally:
            await chunks.aclose()
