"""Files on this machine, and bytes, as sources of documents."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import BinaryIO, Self


class FileSource:
    """A file, or bytes, read in a thread."""

    def __init__(self, file: Path | bytes) -> None:
        self._given = file
        self._file: BinaryIO | None = None

    async def __aenter__(self) -> Self:
        given = self._given
        self._file = (
            io.BytesIO(given)
            if isinstance(given, bytes)
            else await asyncio.to_thread(given.open, "rb")
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    async def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        return await asyncio.to_thread(self.file.read, size)

    async def seek(self, offset: int, /) -> None:
        """Go to a place."""
        await asyncio.to_thread(self.file.seek, offset)

    @property
    def file(self) -> BinaryIO:
        """Return the open file."""
        if self._file is None:
            raise RuntimeError("the file is not open; use `async with`")
        return self._file
