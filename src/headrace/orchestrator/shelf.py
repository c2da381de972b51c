"""The files of one job, as its handler sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headrace.errors import InvalidName, LeaseLost
from headrace.model.context import Artifacts
from headrace.model.note import Entry

if TYPE_CHECKING:
    from headrace.orchestrator.context import JobContext

KIND = "artifact"


class ArtifactRecord(msgspec.Struct, omit_defaults=True):
    """What is kept with the job about one file; the entry's name is `layer/name`."""

    path: str
    size: int
    media_type: str | None = None


class Shelf(Artifacts):
    """Writes files to the store, and their index to the engine under the attempt's token."""

    def __init__(self, context: JobContext) -> None:
        self._context = context

    async def put(
        self, name: str, data: bytes, *, layer: str = "artifacts", media_type: str | None = None
    ) -> str:
        """Keep a file with the job and answer its path. Refused once the lease is lost."""
        context = self._context
        store = context.store
        path = store.path(layer, context.job_id, context.token, name)
        await store.write(path, data)
        record = ArtifactRecord(path=path, size=len(data), media_type=media_type)
        try:
            # The index comes last: what it names is there.
            await context.write(entry=Entry(KIND, f"{layer}/{name}", msgspec.json.encode(record)))
        except LeaseLost:
            await store.remove(path)
            raise
        return path

    async def get(self, name: str, *, layer: str = "artifacts") -> bytes:
        """Read a file that this job has kept, in this attempt or an earlier one."""
        for entry in await self._context.entries(KIND):
            if entry.name == f"{layer}/{name}":
                record = msgspec.json.decode(entry.body, type=ArtifactRecord)
                return await self._context.store.read(record.path)
        raise InvalidName(
            f"job {self._context.job_id} has kept no artifact {name!r} in layer {layer!r}"
        )

    async def list(self) -> list[str]:
        """The paths of the files that this job has kept."""
        return [
            msgspec.json.decode(entry.body, type=ArtifactRecord).path
            for entry in await self._context.entries(KIND)
        ]
