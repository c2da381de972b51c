"""Artifacts in a folder of this machine, or one that machines share."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

from headrace.artifacts.names import LAYERS, aside
from headrace.errors import ArtifactNotFound, EngineError, EngineUnavailable, StorageFull

P = ParamSpec("P")
T = TypeVar("T")

# Files on their way; no job has this for an id. In each layer, as that may be a disk of its own.
INCOMING = ".incoming"

# Files of jobs are for the user that workers run as, and for its group if the umask says so.
FILE_MODE, FOLDER_MODE = 0o660, 0o770

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class LocalFolder:
    """A folder of artifacts. A file appears under its name when all of it is on the disk."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.folder)

    async def write(
        self,
        path: str,
        chunks: AsyncIterator[bytes],
        *,
        size: int | None = None,
        media_type: str | None = None,
    ) -> str:
        """Write next to the place, then move it there."""
        incoming = self.folder / path.partition("/")[0] / INCOMING / uuid.uuid4().hex
        file = await self._do(path, _create, incoming)
        try:
            async for chunk in chunks:
                await self._do(path, file.write, chunk)
            return await self._do(path, self._publish, file, path)
        finally:
            # Also when the writer was cancelled: quick, and nothing else would do it soon.
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                incoming.unlink()

    async def size(self, path: str) -> int:
        """From the file system."""
        return await self._do(path, lambda: (self.folder / path).stat().st_size)

    async def read(self, path: str, start: int, end: int) -> bytes:
        """Opened for each chunk: a reader that goes away leaves nothing open."""
        return await self._do(path, self._read, path, start, end)

    async def remove(self, path: str) -> None:
        """Remove the file; its folder goes with the job."""
        with contextlib.suppress(ArtifactNotFound):
            await self._do(path, os.unlink, self.folder / path)

    async def remove_job(self, job_id: str, spare: Collection[str] = ()) -> None:
        """Remove the job's folder in each layer, or what is in it beside files to spare."""
        if not await asyncio.to_thread(self.folder.exists):
            # Nothing was ever kept here, so what is looked for must be elsewhere.
            raise EngineError(
                f"there is no folder {self.where} on this machine; set HEADRACE_ARTIFACTS to where "
                f"job {job_id} has kept its files"
            )
        for layer in LAYERS:
            folder = self.folder / layer / job_id
            spared = {self.folder / path for path in spare if path.startswith(f"{layer}/{job_id}/")}
            if spared:
                await self._do(f"{layer}/{job_id}", _remove_others, folder, spared)
            else:
                await self._do(f"{layer}/{job_id}", _remove_folder, folder)

    async def tidy(self, older_than: float) -> None:
        """Remove what has not been written to for this long."""
        await self._do(INCOMING, self._tidy, time.time() - older_than)

    async def check(self) -> None:
        """Whether files can be written there, or the folder can be made."""
        await self._do("folder", self._check)

    def _check(self) -> None:
        folder = self.folder.absolute()
        while not folder.exists():
            folder = folder.parent
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    def _read(self, path: str, start: int, end: int) -> bytes:
        with (self.folder / path).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def _publish(self, file: IO[bytes], path: str) -> str:
        file.flush()
        os.fsync(file.fileno())
        try:
            self._move(file.name, path)
        except (NotADirectoryError, IsADirectoryError, FileExistsError):
            # "a" and "a/b" are both fine names, but a file system cannot hold them side by side.
            if not self.folder.is_dir():
                raise
            path = aside(path)
            self._move(file.name, path)
        return path

    def _move(self, source: str, path: str) -> None:
        target = self.folder / path
        _make_folders(target.parent)
        Path(source).replace(target)
        _sync(target.parent)

    def _tidy(self, before: float) -> None:
        for layer in LAYERS:
            for file in (self.folder / layer / INCOMING).glob("*"):
                with contextlib.suppress(FileNotFoundError):
                    if file.stat().st_mtime < before:
                        file.unlink()

    async def _do(
        self, path: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run in a thread; what the file system says becomes an error of ours."""
        try:
            return await asyncio.to_thread(function, *args, **kwargs)
        except OSError as error:
            raise self._error(path, error) from error

    def _error(self, path: str, error: OSError) -> Exception:
        if isinstance(error, FileNotFoundError):
            return ArtifactNotFound(
                f"there is no artifact {path} in {self.where}; it may have been pruned, or "
                "HEADRACE_ARTIFACTS is another folder on this machine"
            )
        problem = f"artifact {path} in {self.where}: {error.strerror or type(error).__name__}"
        if error.errno in _FULL:
            return StorageFull(f"{problem}; make room there")
        if error.errno in _FORBIDDEN:
            return EngineError(f"{problem}; let this process read and write there")
        return EngineUnavailable(problem)


def _create(path: Path) -> IO[bytes]:
    _make_folders(path.parent)
    return open(path, "xb", opener=_open_private)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it, so that they too survive a crash."""
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        if not each.is_dir():
            with contextlib.suppress(FileExistsError):
                each.mkdir(FOLDER_MODE)
                _sync(each.parent)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Not every file system can; those that cannot need no telling.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_others(folder: Path, spared: set[Path]) -> None:
    """Remove the files below a folder that are not to be spared, also while others do."""
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            file = Path(parent, name)
            if file not in spared:
                with contextlib.suppress(FileNotFoundError):
                    file.unlink()
        for name in folders:
            with contextlib.suppress(OSError):  # it is not empty, or gone
                Path(parent, name).rmdir()


def _remove_folder(folder: Path) -> None:
    """Remove a folder, also while others remove it."""
    while True:
        try:
            # A path through something that is no folder raises: the disk may not be mounted.
            folder.lstat()
        except FileNotFoundError:
            return
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
