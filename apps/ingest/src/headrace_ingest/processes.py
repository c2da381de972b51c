"""Processes that do one thing after the other for this one: asked by a pipe, killed when they hang.

A question is a frame (a length and a header) and then any bytes; the answer is a frame. An
empty one comes first: the process listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO, NoReturn

PIECE = 1 << 20
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")


class ChildProcess:
    """One process, `python -m module`. It ends when this process does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._writing = asyncio.Lock()
        self._reading = asyncio.Lock()
        self.asked = 0

    @classmethod
    async def start(cls, module: str, *arguments: str) -> ChildProcess:
        """Start it and wait until it listens, which may take long on a busy machine: the time for a
        question begins after it. Raises as `ask` does if the process ends before.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", module, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            # What a library starts goes with it.
            start_new_session=True,
        )
        child = cls(process)
        try:
            await child._answer()
        except BaseException:
            await child.kill()
            raise
        return child

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self._process.returncode is None

    async def ask(self, header: bytes, content: AsyncIterator[bytes]) -> bytes:
        """Ask something and return the answer. Raises `asyncio.IncompleteReadError` or
        `ConnectionError` if the process ends before. Questions that are asked meanwhile wait in the
        pipe; after one that was given up, the process has to be killed.
        """
        self.asked += 1
        stdin = self._process.stdin
        if stdin is None:
            raise ConnectionError("the process has no pipes")
        async with self._writing:
            stdin.write(len(header).to_bytes(4, "big") + header)
            async for piece in content:
                stdin.write(piece)
                await stdin.drain()
            await stdin.drain()
        # Both locks are handed on in the order of asking, so that each gets its own answer.
        async with self._reading:
            return await self._answer()

    async def _answer(self) -> bytes:
        stdout = self._process.stdout
        if stdout is None:
            raise ConnectionError("the process has no pipes")
        length = int.from_bytes(await stdout.readexactly(4), "big")
        return await stdout.readexactly(length)

    async def kill(self) -> None:
        """End it and what it has started, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()


class KeptProcess:
    """One process that is kept from question to question: started by the first, and anew when it
    has ended. `ahead`: so many more questions lie ready for it while it answers one.
    """

    def __init__(self, module: str, *arguments: str, ahead: int = 0) -> None:
        self._program = module, *arguments
        self._places = asyncio.Semaphore(1 + ahead)
        self._starting = asyncio.Lock()
        self.child: ChildProcess | None = None

    async def ask(
        self, header: bytes, content: bytes = b"", *, seconds: float | None = None
    ) -> bytes:
        """Return the answer. A question that sees its process end is asked once more. Raises
        `ConnectionError` if that ends as well, `TimeoutError` if an answer takes longer.
        """
        async with self._places:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                return await self._ask(header, content, seconds)
            try:
                return await self._ask(header, content, seconds)
            except asyncio.IncompleteReadError as error:
                raise ConnectionError("the process has ended") from error

    async def _ask(self, header: bytes, content: bytes, seconds: float | None) -> bytes:
        child = await self._running()
        try:
            async with asyncio.timeout(seconds):
                return await child.ask(header, _pieces(content))
        except BaseException:
            # Also if this question was given up: its answer would be taken for that of the next.
            await self._end(child)
            raise

    async def _running(self) -> ChildProcess:
        async with self._starting:
            if self.child is not None and not self.child.is_alive:
                await self._end(self.child)
            if self.child is None:
                self.child = await ChildProcess.start(*self._program)
            return self.child

    async def _end(self, child: ChildProcess) -> None:
        if self.child is child:
            self.child = None
        await child.kill()

    async def close(self) -> None:
        """End the process."""
        if self.child is not None:
            await self._end(self.child)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE):
        yield content[start : start + PIECE]


def raise_told(kind: str, message: str, other: type[Exception]) -> NoReturn:
    """Raise what a process told of: a bug as itself, anything else as `other`."""
    from headrace import BUGS  # noqa: PLC0415 - the processes themselves do without

    bugs = {each.__name__: each for each in BUGS}
    raise bugs.get(kind, other)(message)


def read_frame(stream: BinaryIO) -> bytes:
    """Return the next frame; nothing if the other side has closed its end."""
    return stream.read(int.from_bytes(stream.read(4), "big"))


def begin_answers(stream: BinaryIO) -> None:
    """Say that this process listens."""
    write_frame(stream, b"")


def write_frame(stream: BinaryIO, content: bytes) -> None:
    """Write a length and that many bytes."""
    stream.write(len(content).to_bytes(4, "big") + content)
    stream.flush()


def _environment() -> dict[str, str]:
    """Return what a process needs, and no setting: a hostile document finds no password there."""
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
