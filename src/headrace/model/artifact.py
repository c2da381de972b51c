"""A file that a job keeps, and what a handler may do with the files of its job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec

Content = bytes | bytearray | memoryview | Path | IO[bytes] | AsyncIterable[bytes] | Iterable[bytes]
"""What a file can be made of."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a job, from the engine's index. `path` is where it is in the store; `sha256` is the
    checksum of its content, in hexadecimal, and `at` is when it was kept: None where it is unknown.
    """

    layer: str
    name: str
    path: str
    size: int
    sha256: str | None = None
    media_type: str | None = None
    metadata: Mapping[str, str] = {}
    at: datetime | None = None


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that outlives its job for an owner; `at` is when that was last said."""

    path: str
    owner: str
    reason: str
    size: int
    layer: str
    job_id: str
    name: str
    at: datetime


class KeptPage(msgspec.Struct):
    """Kept files by job. `cursor` asks for the next page; None: there is none."""

    files: list[KeptFile]
    cursor: str | None = None


File = tuple[str, Content] | Content | Artifact
"""A file that goes with a job: content (a Path and an open file have a name), a name with content,
or what `app.artifacts.put` has returned.
"""


class Artifacts(ABC):
    """The files that a job keeps, in layers: bronze, silver, gold, artifacts.

    Where a name is asked for to read, the path that `put` answered will do as well, also that of
    another job, and so will the argument of a file that was handed in with this job.
    """

    @abstractmethod
    async def put(
        self,
        name: str,
        data: Content,
        *,
        layer: str = "artifacts",
        media_type: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Keep a file with the job and return its path. Refused once the lease is lost.

        `data` is bytes, a `pathlib.Path`, an open file, or a stream of bytes, async or not; of a
        large one only a part is in memory at a time. A name that was kept before is replaced.
        """

    @abstractmethod
    def stream(
        self, name: str, *, layer: str = "artifacts", start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """A file in chunks, or the part from `start` up to `end`. Raises `ArtifactNotFound`."""

    @abstractmethod
    async def find(self, name: str, *, layer: str = "artifacts") -> Artifact:
        """Size, checksum and the like of one file. Raises `ArtifactNotFound`."""

    @abstractmethod
    async def keep(
        self, name: str, *, owner: str, reason: str = "", layer: str = "artifacts"
    ) -> KeptFile:
        """Keep a file of this job when the job is pruned, until `owner` releases it. Raises
        `ArtifactNotFound`.
        """

    @abstractmethod
    async def list(self) -> list[Artifact]:
        """The files that this job has kept, in this attempt or an earlier one."""

    async def get(self, name: str, *, layer: str = "artifacts") -> bytes:
        """A whole file at once. Raises `ArtifactNotFound`."""
        return b"".join([chunk async for chunk in self.stream(name, layer=layer)])

    @abstractmethod
    async def save(self, name: str, target: Path, *, layer: str = "artifacts") -> None:
        """Write a file to disk, for programs that want one. Raises `ArtifactNotFound`."""
