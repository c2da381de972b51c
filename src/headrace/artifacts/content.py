"""What a file is made of: bytes, a file, or a stream; read in chunks, whatever its size."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from pathlib import Path
from typing import Any

from headrace.errors import InvalidInput
from headrace.model.artifact import Content

CHUNK = 1_048_576
"""How many bytes are handled at once where we choose."""


class Source:
    """Content that can be read in chunks. `size` is None if it is not known before the end.

    `repeatable`: it can be read again from the start, so a failed write can be tried again.
    """

    def __init__(
        self, read: Callable[[], AsyncGenerator[bytes, None]], *, size: int | None, repeatable: bool
    ) -> None:
        self.chunks = read
        self.size = size
        self.repeatable = repeatable


def source_of(content: Content) -> Source:
    """Make content readable, or say what is wrong with it."""
    match content:
        case bytes() | bytearray() | memoryview():
            view = memoryview(content).cast("B")
            return Source(lambda: _slices(view), size=len(view), repeatable=True)
        case str():
            raise InvalidInput(
                "an artifact is made of bytes, got text; encode it (text.encode()), or give the "
                "file as a pathlib.Path"
            )
        case os.PathLike():
            path = Path(content)
            return Source(lambda: _of_file(path), size=_size_of(path), repeatable=True)
    given: Any = content
    if hasattr(given, "__aiter__"):
        return Source(lambda: _checked(given), size=None, repeatable=False)
    if hasattr(given, "read"):
        return Source(lambda: _pulled(lambda: given.read(CHUNK)), size=None, repeatable=False)
    if hasattr(given, "__iter__"):
        each = iter(given)
        return Source(lambda: _pulled(lambda: _next(each)), size=None, repeatable=False)
    raise InvalidInput(
        f"an artifact is made of bytes, a pathlib.Path, an open file or a stream of bytes, got "
        f"{type(content).__name__}"
    )


async def save(chunks: AsyncIterable[bytes], target: Path) -> None:
    """Write a stream to a file. It is there whole or not at all."""
    partial = target.with_name(f".{uuid.uuid4().hex}.partial")
    try:
        file = await asyncio.to_thread(partial.open, "xb")
        with file:
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)
        await asyncio.to_thread(partial.replace, target)
    finally:
        await asyncio.to_thread(partial.unlink, missing_ok=True)


async def _slices(view: memoryview) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(view), CHUNK):
        yield bytes(view[start : start + CHUNK])


async def _of_file(path: Path) -> AsyncGenerator[bytes, None]:
    try:
        file = await asyncio.to_thread(path.open, "rb")
    except OSError as error:
        raise _unreadable(path, error) from None
    with file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


async def _checked(stream: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    async for chunk in stream:
        if checked := _bytes(chunk):
            yield checked


async def _pulled(pull: Callable[[], bytes | None]) -> AsyncGenerator[bytes, None]:
    """Whatever waits to be read waits in a thread."""
    while (chunk := await asyncio.to_thread(pull)) is not None and _bytes(chunk):
        yield _bytes(chunk)


def _next(each: Any) -> bytes | None:
    """The next chunk that is not empty, or None at the end."""
    while (chunk := next(each, None)) is not None and not len(chunk):
        pass
    return chunk


def _bytes(chunk: Any) -> bytes:
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, bytearray | memoryview):
        # The owner may use its buffer again before the chunk is written.
        return bytes(chunk)
    raise InvalidInput(
        f"an artifact is made of bytes, but its stream has {type(chunk).__name__}; encode it"
    )


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"{str(path)!r} cannot be kept as an artifact: {error.strerror}; give the path of a file "
        "that this process may read"
    )
