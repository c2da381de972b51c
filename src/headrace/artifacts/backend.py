"""What a place for files has to do. The door adds checks, checksums, chunks and patience."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Protocol


class Backend(Protocol):
    """A folder or a bucket. Paths have been checked.

    Trouble that may pass is raised as `EngineUnavailable`, no room as `StorageFull`, anything else
    that the store says no to as `EngineError`. A message never holds a credential.
    """

    @property
    def where(self) -> str:
        """What people call it, without secrets."""

    async def write(
        self, path: str, chunks: AsyncIterator[bytes], *, size: int | None, media_type: str | None
    ) -> str:
        """Keep a file, and return the path where it is: another one if this was taken.

        It is visible whole or not at all, and when this returns it survives a crash. `size` is
        None where it is not known before the end. What the stream raises is raised here.
        """

    async def size(self, path: str) -> int:
        """How many bytes a file has. Raises `ArtifactNotFound`."""

    async def read(self, path: str, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, or fewer if it is shorter. Raises
        `ArtifactNotFound`.
        """

    async def remove(self, path: str) -> None:
        """Remove a file; it is fine if it is gone."""

    async def remove_job(self, job_id: str, spare: Collection[str] = ()) -> None:
        """Remove every file of a job, in all layers, except the paths to `spare`; it is fine if
        some or all are gone.
        """

    async def tidy(self, older_than: float) -> None:
        """Remove what writers that were killed so many seconds ago have left half-written."""

    async def check(self) -> None:
        """Raise if the store cannot be used as it is now. Nothing is written."""
