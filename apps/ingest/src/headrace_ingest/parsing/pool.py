"""Read documents in processes of their own, which are killed when one takes too long.

A parser that hangs, crashes or wants all memory takes its process with it, not the worker. A
process is used again after a document that it has read in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from headrace import ParserError, ValidationError
from headrace_ingest.names import shown
from headrace_ingest.parsing.child import Answered, Asked
from headrace_ingest.parsing.parse import DEFAULT_LIMITS, MEMORY_LIMIT
from headrace_ingest.parsing.parsed import Limits, Parsed
from headrace_ingest.processes import ChildProcess

# After so many documents a process is replaced: what a library leaks does not add up.
DOCUMENTS = 100
MODULE = "headrace_ingest.parsing.child"


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
        self._idle: list[ChildProcess] = []

    async def parse(self, content: AsyncIterator[bytes], size: int, name: str) -> Parsed:
        """Return the text of a document. Raises `ParserError` or `ValidationError`, also if it took
        too long or too much memory.
        """
        if size > self.limits.bytes:
            raise ValidationError(
                f"{shown(name)} has {size:,} bytes; at most {self.limits.bytes:,} are read."
            )
        async with self._free:
            child: ChildProcess | None = None
            try:
                child = await self._child()
                async with asyncio.timeout(self.seconds):
                    asked = Asked(name=name, size=size, limits=self.limits)
                    answer = await child.ask(msgspec.json.encode(asked), content)
            except TimeoutError:
                raise ParserError(
                    f"{shown(name)} was not read within {self.seconds:g} s and was given up."
                ) from None
            except (asyncio.IncompleteReadError, ConnectionError):
                # A library that gets no more memory does not raise; it ends its process.
                raise ParserError(
                    f"{shown(name)} cannot be read: the program that reads it ended; it may need "
                    f"more than {self.memory_limit // 2**20:,} MiB of memory."
                ) from None
            else:
                return self._result(child, msgspec.json.decode(answer, type=Answered), name)
            finally:
                if child is not None and child not in self._idle:
                    await child.kill()

    async def _child(self) -> ChildProcess:
        """Return a process that waits, or a new one. Some may have been killed meanwhile."""
        while self._idle:
            child = self._idle.pop()
            if child.is_alive:
                return child
            await child.kill()
        return await ChildProcess.start(MODULE, str(self.memory_limit))

    def _result(self, child: ChildProcess, answered: Answered, name: str) -> Parsed:
        if answered.error == "MemoryError":
            raise ParserError(
                f"{shown(name)} cannot be read within {self.memory_limit // 2**20:,} MiB of memory."
            )
        if child.asked < DOCUMENTS:
            self._idle.append(child)
        if answered.parsed is not None:
            return answered.parsed
        kind = ValidationError if answered.error == "ValidationError" else ParserError
        raise kind(answered.message)

    async def close(self) -> None:
        """End all processes."""
        while self._idle:
            await self._idle.pop().kill()
