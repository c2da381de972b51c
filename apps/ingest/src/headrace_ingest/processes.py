"""Processes that do one thing after the other for this one: asked by a pipe, killed when they hang.

A question is a frame (a length and a JSON header) and then any bytes; the answer is a frame. An
empty one comes first: the process listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")


class ChildProcess:
    """One process, `python -m module`. It ends when this process does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
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
        `ConnectionError` if the process ends before.
        """
        self.asked += 1
        stdin = self._process.stdin
        if stdin is None:
            raise ConnectionError("the process has no pipes")
        stdin.write(len(header).to_bytes(4, "big") + header)
        async for piece in content:
            stdin.write(piece)
            await stdin.drain()
        await stdin.drain()
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
