"""Files that jobs keep: in a local folder, keyed by layer, job and attempt.

The path holds the attempt's token, so an attempt that lost its lease can never overwrite what a
newer one wrote. The index of what belongs to a job is kept in the engine, guarded by the token.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path, PurePosixPath

from headrace.errors import EngineError, InvalidName, StorageFull

LAYERS = ("bronze", "silver", "gold", "artifacts")
NAME_LIMIT = 200


class ArtifactStore:
    """A folder of artifacts."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, layer: str, job_id: str, token: int, name: str) -> str:
        """Where a file is kept, relative to the folder; refuses names that could leave it."""
        if layer not in LAYERS:
            raise InvalidName(
                f"artifact layer {layer!r} is unknown; use one of {', '.join(LAYERS)}"
            )
        parts = PurePosixPath(name).parts
        if (
            not parts
            or name.startswith("/")
            or any(part in (".", "..") for part in parts)
            or any(ord(character) < 32 or character == "\\" for character in name)
            or len(name.encode("utf-8", "replace")) > NAME_LIMIT
        ):
            raise InvalidName(
                f"artifact name {name[:60]!r} is not valid; use a relative path of at most "
                f'{NAME_LIMIT} bytes without "..", backslashes and control characters'
            )
        return str(PurePosixPath(layer, job_id, str(token), *parts))

    async def write(self, path: str, data: bytes) -> None:
        """Keep a file. It is visible whole or not at all."""
        await asyncio.to_thread(self._write, path, data)

    async def read(self, path: str) -> bytes:
        """Read a file."""
        return await asyncio.to_thread((self.folder / path).read_bytes)

    async def remove(self, path: str) -> None:
        """Remove a file; it is fine if it is gone."""
        await asyncio.to_thread((self.folder / path).unlink, missing_ok=True)

    def _write(self, path: str, data: bytes) -> None:
        target = self.folder / path
        temporary = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
                temporary = file.name
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except OSError as error:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)
            kind = StorageFull if error.errno in (28, 122) else EngineError
            raise kind(
                f"artifact {path} cannot be written below {self.folder}: {error.strerror}"
            ) from error
