"""The worker's side of a child's files: everything goes through the worker's context and token."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.model.artifact import Artifacts, Content
from headrace.orchestrator.isolation.protocol import (
    ArtifactChunk,
    ArtifactFind,
    ArtifactList,
    ArtifactPut,
    ArtifactQuestion,
    ArtifactRead,
)
from headrace.task.codec import encode


class ArtifactServer:
    """Answers what a child asks about the files of its job."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._incoming: dict[int, _Incoming] = {}

    async def answer(self, question: ArtifactQuestion) -> bytes:
        """The answer: JSON, a path, or a chunk."""
        match question:
            case ArtifactPut():
                return await self._put(question)
            case ArtifactChunk():
                incoming = self._incoming.get(question.put)
                if incoming is not None:
                    await incoming.give(question)
                return b""
            case ArtifactFind():
                return encode(await self._artifacts.find(question.name, layer=question.layer))
            case ArtifactRead(_, _, path, start, end):
                stream = self._artifacts.stream(path, start=start, end=end)
                return b"".join([chunk async for chunk in stream])
            case ArtifactList():
                return encode(await self._artifacts.list())

    async def _put(self, put: ArtifactPut) -> bytes:
        incoming = self._incoming[put.number] = _Incoming()
        data: Content = incoming.chunks()
        if put.file is not None:
            data = Path(os.fsdecode(put.file))
        try:
            path = await self._artifacts.put(
                put.name,
                data,
                layer=put.layer,
                media_type=put.media_type,
                metadata=put.metadata,
            )
        finally:
            del self._incoming[put.number]
            incoming.close()
        return path.encode()


class _Incoming:
    """A file on its way from a child. A chunk is answered when the store has taken it."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[ArtifactChunk, asyncio.Future[None]]] = asyncio.Queue()
        self._over = False

    async def give(self, chunk: ArtifactChunk) -> None:
        """Wait until it has been taken, or nobody will."""
        if not self._over:
            taken = asyncio.get_running_loop().create_future()
            self._queue.put_nowait((chunk, taken))
            await taken

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """What comes, until the end."""
        while True:
            chunk, taken = await self._queue.get()
            try:
                if chunk.broken:
                    raise HeadraceError("the handler's own stream ended with an error")
                if not chunk.data:
                    return
                yield chunk.data
            finally:
                _let_go(taken)

    def close(self) -> None:
        """Nobody takes chunks any more."""
        self._over = True
        while not self._queue.empty():
            _let_go(self._queue.get_nowait()[1])


def _let_go(taken: asyncio.Future[None]) -> None:
    if not taken.done():
        taken.set_result(None)
