"""The artifacts of one job, as its handler sees them."""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headrace.artifacts import check_path, place
from headrace.artifacts.content import save
from headrace.artifacts.index import (
    HANDED_IN_TOKEN,
    KIND,
    check_media_type,
    check_metadata,
    make_entry,
    read_entries,
    read_handed_in,
)
from headrace.artifacts.kept_files import keep, kept_paths
from headrace.artifacts.names import check_layer, check_name, is_path
from headrace.errors import ArtifactNotFound, EngineError, LeaseLost
from headrace.model.artifact import Artifact, Artifacts, Content, KeptFile

if TYPE_CHECKING:
    from headrace.orchestrator.running.context import JobContext


class JobArtifacts(Artifacts):
    """Writes files to the store, and their index to the engine under the attempt's token.

    Works on the worker's event loop, and on that of a handler in a thread.
    """

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._names: dict[tuple[str, str], _NameState] = {}
        # While it has the lease nothing else writes the index, so it is read at most once.
        self._index: dict[tuple[str, str], Artifact] | None = None
        self._guard = threading.Lock()

    async def put(
        self,
        name: str,
        data: Content,
        *,
        layer: str = "artifacts",
        media_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        context = self._context
        check_media_type(media_type)
        checked = check_metadata(metadata)
        version = self._begin(layer, name)
        try:
            path = place(layer, context.job_id, context.token, name, version=version)
            stored = await context.store.put(path, data, media_type=media_type)
            entry = make_entry(layer, name, stored, media_type=media_type, metadata=checked)
            try:
                # The index comes last: what it names is there.
                await context.write(entry=entry)
            except LeaseLost:
                await self._discard(stored.path)
                raise
        except BaseException:
            self._end(layer, name, None)
            raise
        file = Artifact(
            layer=layer,
            name=name,
            path=stored.path,
            size=stored.size,
            sha256=stored.sha256,
            media_type=media_type,
            metadata=checked,
        )
        replaced = self._end(layer, name, file)
        if replaced is not None and not await self._is_kept(replaced.path):
            await self._discard(replaced.path)
        return stored.path

    async def keep(
        self, name: str, *, owner: str, reason: str = "", layer: str = "artifacts"
    ) -> KeptFile:
        context = self._context
        file = await self.find(name, layer=layer)
        # Refused once the lease is lost, as every write of an attempt.
        await context.write()
        keeping = keep(context.engine, context.store, file.path, owner=owner, reason=reason)
        return await context.on_worker_loop(keeping)

    async def _is_kept(self, path: str) -> bool:
        """Whether somebody keeps a file that the index does not name any longer."""
        context = self._context
        kept = functools.partial(kept_paths, context.engine, context.job_id)
        return path in await context.on_worker_loop(context.retry_while_unavailable(kept))

    async def stream(
        self, name: str, *, layer: str = "artifacts", start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        path, sha256 = name, None
        if not is_path(name):
            found = await self.find(name, layer=layer)
            path, sha256 = found.path, found.sha256
        async for chunk in self._context.store.stream(path, start=start, end=end, sha256=sha256):
            yield chunk

    async def save(self, name: str, target: Path, *, layer: str = "artifacts") -> None:
        await save(self.stream(name, layer=layer), target)

    async def find(self, name: str, *, layer: str = "artifacts") -> Artifact:
        context = self._context
        if is_path(name):
            return await self._at(name)
        check_layer(layer)
        check_name(name)
        found = await self._find(layer, name)
        if found is not None:
            return found
        handed_in = read_handed_in(context.job_id, context.meta).get((layer, name))
        if handed_in is not None:
            return handed_in
        try:
            handed_in = await self._at(place(layer, context.job_id, HANDED_IN_TOKEN, name))
        except ArtifactNotFound:
            raise ArtifactNotFound(
                f"job {context.job_id} has kept no artifact {name[:200]!r} in layer {layer!r}; "
                "see `ctx.artifacts.list()`"
            ) from None
        return handed_in

    async def list(self) -> list[Artifact]:
        return list(read_entries(await self._context.entries(KIND)).values())

    async def _find(self, layer: str, name: str) -> Artifact | None:
        """Look in what this attempt has put itself, then in the engine's index."""
        with self._guard:
            own = self._names.get((layer, name))
            if own is not None and own.file is not None and not own.concurrent_puts:
                return own.file
            index = None if own is not None and own.concurrent_puts else self._index
        if index is None:
            index = read_entries(await self._context.entries(KIND))
            with self._guard:
                self._index = index
        return index.get((layer, name))

    async def _at(self, path: str) -> Artifact:
        """Return a file by its path: of another job, or uploaded with this one."""
        layer, job_id = check_path(path)
        if job_id == self._context.job_id:
            for file in read_handed_in(job_id, self._context.meta).values():
                if file.path == path:
                    return file
        size = await self._context.store.size(path)
        return Artifact(layer=layer, name=path.split("/", 3)[3], path=path, size=size)

    async def _discard(self, path: str) -> None:
        try:
            await self._context.store.remove(path)
        except EngineError as error:
            # It is in no index, and is removed together with its job.
            self._context.log.warning("artifact %s is left over: %s", path, error)

    def _begin(self, layer: str, name: str) -> int:
        """Return a new version: each put has a path of its own, so that what the index names never
        changes.
        """
        with self._guard:
            each = self._names.setdefault((layer, name), _NameState())
            each.versions += 1
            each.under_way += 1
            if each.under_way > 1:
                each.concurrent_puts = True
            return each.versions

    def _end(self, layer: str, name: str, file: Artifact | None) -> Artifact | None:
        """Return what this put has replaced, if that is certain."""
        with self._guard:
            each = self._names[layer, name]
            each.under_way -= 1
            if file is None:
                return None
            replaced, each.file = each.file, file
            return None if each.concurrent_puts else replaced


class _NameState(msgspec.Struct, eq=False):
    """What this attempt has done under one name."""

    versions: int = 0
    under_way: int = 0
    file: Artifact | None = None
    # Two puts ran at once: which of them the index names is not known here.
    concurrent_puts: bool = False
