"""What the tasks, the routes and the commands share: tables, model, search and originals."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import App, ArtifactNotFound, InvalidSetting
from headrace.bundles import Setup
from headrace_ingest.embedding import Embedder, LocalEmbedder, RemoteEmbedder
from headrace_ingest.masking.process import Masker
from headrace_ingest.parsing.parsed import Limits
from headrace_ingest.parsing.pool import ParserPool
from headrace_ingest.settings import IngestSettings
from headrace_ingest.store.originals import Sealer, load_key, read_key
from headrace_ingest.store.repository import Repository

if TYPE_CHECKING:
    from headrace_ingest.search.search import Search

TASK = "ingest.document"
QUEUE = "ingest"
OWNER = "ingest"
ORIGINAL = "original.sealed"
SEALED_TYPE = "application/octet-stream"

_EMBEDDERS: WeakKeyDictionary[Setup, Embedder] = WeakKeyDictionary()


class IngestService:
    """The parts of the bundle in one App, each made when it is first used."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._repositories: WeakKeyDictionary[AsyncEngine, Repository] = WeakKeyDictionary()
        self._searches: WeakKeyDictionary[AsyncEngine, Search] = WeakKeyDictionary()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ParserPool] = WeakKeyDictionary()
        self._maskers: WeakKeyDictionary[asyncio.AbstractEventLoop, Masker] = WeakKeyDictionary()

    @property
    def app(self) -> App:
        """Return the App."""
        return self.setup.app

    @property
    def settings(self) -> IngestSettings:
        """Return the settings of the bundle."""
        settings: IngestSettings = self.setup.settings
        return settings

    @property
    def repository(self) -> Repository:
        """Return the repository of the running event loop."""
        engine = self.setup.engine()
        return self._repositories.setdefault(engine, Repository(engine))

    @property
    def search(self) -> Search:
        """Return the search of the running event loop, which keeps its index in memory."""
        from headrace_ingest.search.search import (  # noqa: PLC0415 - what only searches need
            Search,
        )

        engine = self.setup.engine()
        if engine not in self._searches:
            memory = self.settings.search_memory
            self._searches[engine] = Search(engine, self.embedder, memory_bytes=memory)
        return self._searches[engine]

    @property
    def pool(self) -> ParserPool:
        """Return the processes of the running event loop that read documents."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            settings = self.settings
            self._pools[loop] = ParserPool(
                settings.parsers,
                seconds=settings.parse_seconds,
                limits=Limits(bytes=settings.largest_file),
            )
        return self._pools[loop]

    @property
    def masker(self) -> Masker:
        """Return what masks documents for the running event loop."""
        loop = asyncio.get_running_loop()
        return self._maskers.setdefault(loop, Masker(names=self.settings.mask_names))

    @property
    def embedder(self) -> Embedder:
        """Return what turns texts into vectors. Tasks, routes and commands of an App have one, so
        that its model is loaded once.
        """
        if self.setup not in _EMBEDDERS:
            _EMBEDDERS[self.setup] = self._make_embedder()
        return _EMBEDDERS[self.setup]

    def _make_embedder(self) -> Embedder:
        settings = self.settings
        if settings.embedding_url is None:
            return LocalEmbedder()
        return RemoteEmbedder(
            settings.embedding_url,
            key=settings.embedding_key,
            model=settings.embedding_model,
            dimensions=settings.embedding_dimensions,
        )

    @functools.cached_property
    def sealer(self) -> Sealer:
        """Return what seals originals."""
        given = self.settings.key
        return Sealer(read_key(given) if given else load_key(self._key_folder()))

    async def put_original(self, document_id: str, content: AsyncIterator[bytes]) -> str:
        """Seal a file and store it under the id of its document; return where it is. Unless it is
        kept or its job is enqueued, it is removed after an hour.
        """
        stored = await self.app.artifacts.put(
            ORIGINAL, self.sealer.seal(content), job_id=document_id, media_type=SEALED_TYPE
        )
        return stored.path

    async def keep_original(self, artifact: str, name: str) -> None:
        """Keep an original for as long as its document is there, whatever becomes of its job."""
        await self.app.artifacts.keep(artifact, owner=OWNER, reason=f"the original of {name}")

    def open_original(self, artifact: str, name: str) -> AsyncIterator[bytes]:
        """Return the content of an original. Raises `ArtifactNotFound` or `ValidationError` when
        it is read.
        """
        return self.sealer.open(self.app.artifacts.stream(artifact), name)

    async def remove_original(self, artifact: str | None) -> None:
        """Remove an original; it is fine if it is gone."""
        if artifact is not None:
            with contextlib.suppress(ArtifactNotFound):
                await self.app.artifacts.release(artifact, owner=OWNER)
            await self.app.artifacts.remove(artifact)

    async def close_embedder(self) -> None:
        """End the process of the local model, before the event loop ends."""
        if isinstance(self.embedder, LocalEmbedder):
            await self.embedder.close()

    def _key_folder(self) -> Path:
        """Return where the key is, if none is set: beside the tables, else beside the files."""
        beside = self.setup.tables_address.path
        if beside is not None:
            return beside.parent
        artifacts = self.app.settings.artifacts
        if "://" in artifacts:
            raise InvalidSetting(
                "HEADRACE_INGEST_KEY is not set, and there is no folder for a key that all "
                "machines share; make one: openssl rand -base64 32"
            )
        return Path(artifacts).absolute().parent
