"""Read documents in processes of their own, which are killed when one takes too long.

A parser that hangs, crashes or wants all memory takes its process with it, not the worker. A
process is used again after a document that it has read in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

import msgspec

from headrace import ParserError, ValidationError
from headrace_ingest.names import shown
from headrace_ingest.parsing.child import Answered, Asked
from headrace_ingest.parsing.parse import DEFAULT_LIMITS, MEMORY_LIMIT
from headrace_ingest.parsing.parsed import Limits, Parsed

# After so many documents a process is replaced: what a library leaks does not add up.
DOCUMENTS = 100
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")


class ParserPool:
    """Up to `size` processes that read documents. Others wait for one of these."""

    def __init__(
        self,
        size: int = 2,
        *,
        seconds: float = 60.0,
        memory_limit: int = MEMORY_LIMIT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.seconds = seconds
        self.memory_limit = memory_limit
        self.limits = limits
        self._free = asyncio.Semaphore(size)
        self._idle: list[_Child] = []

    async def parse(self, content: AsyncIterator[bytes], size: int, name: str) -> Parsed:
        """Return the text of a document. Raises `ParserError` or `ValidationError`, also if it took
        too long or too much memory.
        """
        if size > self.limits.bytes:
            raise ValidationError(
                f"{shown(name)} has {size:,} bytes; at most {self.limits.bytes:,} are read."
            )
        async with self._free:
            child = await self._child()
            try:
                async with asyncio.timeout(self.seconds):
                    answered = await child.ask(
                        Asked(name=name, size=size, limits=self.limits), content
                    )
            except TimeoutError:
                raise ParserError(
                    f"{shown(name)} was not read within {self.seconds:g} s and was given up."
                ) from None
            except (asyncio.IncompleteReadError, ConnectionError):
                raise ParserError(
                    f"{shown(name)} cannot be read: the program that reads it ended."
                ) from None
            else:
                return self._result(child, answered, name)
            finally:
                if child not in self._idle:
                    await child.kill()

    async def _child(self) -> _Child:
        """Return a process that waits, or a new one. Some may have been killed meanwhile."""
        while self._idle:
            child = self._idle.pop()
            if child.is_alive:
                return child
            await child.kill()
        return await _Child.start(self.memory_limit)

    def _result(self, child: _Child, answered: Answered, name: str) -> Parsed:
        if answered.error == "MemoryError":
            raise ParserError(
                f"{shown(name)} cannot be read within {self.memory_limit // 2**20:,} MiB of memory."
            )
        if child.documents < DOCUMENTS:
            self._idle.append(child)
        if answered.parsed is not None:
            return answered.parsed
        kind = ValidationError if answered.error == "ValidationError" else ParserError
        raise kind(answered.message)

    async def close(self) -> None:
        """End all processes."""
        while self._idle:
            await self._idle.pop().kill()


class _Child:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.documents = 0

    @classmethod
    async def start(cls, memory_limit: int) -> _Child:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "headrace_ingest.parsing.child", str(memory_limit)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            # What a library starts goes with it.
            start_new_session=True,
        )
        return cls(process)

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self._process.returncode is None

    async def ask(self, asked: Asked, content: AsyncIterator[bytes]) -> Answered:
        """Hand in a document and return the answer."""
        self.documents += 1
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ConnectionError("the process has no pipes")
        header = msgspec.json.encode(asked)
        stdin.write(len(header).to_bytes(4, "big") + header)
        async for piece in content:
            stdin.write(piece)
            await stdin.drain()
        await stdin.drain()
        length = int.from_bytes(await stdout.readexactly(4), "big")
        return msgspec.json.decode(await stdout.readexactly(length), type=Answered)

    async def kill(self) -> None:
        """End it and what it has started, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()


def _environment() -> dict[str, str]:
    """Return what a process needs, and no setting: a hostile document finds no password there."""
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
