"""Handlers that keep files, for the worker's loop, a thread, and a process of their own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import App, Context

app = App(os.environ.get("HEADRACE_TEST_ARTIFACTS_URL", "sqlite:///artifacts-tests.db"))

MEBIBYTE = 1_048_576


async def exercise(ctx: Context) -> dict[str, Any]:
    """Do everything that a handler can do with files."""

    async def streamed() -> AsyncIterator[bytes]:
        for number in range(5):
            yield bytes([number]) * 700_000

    def pulled() -> Iterator[bytes]:
        yield b"one "
        yield b"two"

    files = ctx.artifacts
    paths = [
        await files.put("bytes", b"abc", layer="bronze", media_type="text/plain"),
        await files.put("streamed", streamed(), layer="silver"),
        await files.put("보고서/pulled.txt", pulled(), layer="gold", metadata={"언어": "ko"}),
        await files.put("empty", b""),
    ]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source"), Path(folder, "target")
        source.write_bytes(bytes(range(256)) * 9_000)  # noqa: ASYNC240
        paths.append(await files.put("from a file", source))
        await files.save("from a file", target)
        assert target.read_bytes() == source.read_bytes()  # noqa: ASYNC240
    assert await files.get("bytes", layer="bronze") == b"abc"
    assert await files.get("empty") == b""
    assert await files.get("보고서/pulled.txt", layer="gold") == b"one two"
    whole = [chunk async for chunk in files.stream("streamed", layer="silver")]
    assert len(whole) > 1 or ctx.task != "in_a_process"
    assert (
        hashlib.sha256(b"".join(whole)).hexdigest()
        == (await files.find("streamed", layer="silver")).sha256
    )
    part = [each async for each in files.stream(paths[1], start=699_999, end=700_001)]
    assert b"".join(part) == b"\x00\x01"
    with pytest.raises(headrace.ArtifactNotFound, match="has kept no artifact 'absent'"):
        await files.get("absent")

    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise LookupError("my own trouble")

    with pytest.raises(LookupError, match="my own trouble"):
        await files.put("broken", broken())
    with pytest.raises(headrace.InvalidName):
        await files.put("../x", b"")
    listed = await files.list()
    assert [file.path for file in listed] == paths
    return {file.name: file.size for file in listed}


@app.task(retries=0)
async def on_the_loop(ctx: Context) -> dict[str, Any]:
    return await exercise(ctx)


@app.task(retries=0)
def in_a_thread(ctx: Context) -> dict[str, Any]:
    return asyncio.run(exercise(ctx))


@app.task(retries=0, isolate="process")
async def in_a_process(ctx: Context) -> dict[str, Any]:
    return await exercise(ctx)


@app.task(retries=0, isolate="process")
async def large_in_a_process(ctx: Context, mebibytes: int) -> list[Any]:
    """Write and read a file of this size, and tell how much memory that took here."""
    size = mebibytes * MEBIBYTE

    async def made() -> AsyncIterator[bytes]:
        for number in range(mebibytes):
            yield bytes([number % 256]) * MEBIBYTE

    before = peak()
    await ctx.artifacts.put("large", made())
    read = sum([len(chunk) async for chunk in ctx.artifacts.stream("large")])
    assert read == size
    return [peak() - before, peak()]


def peak() -> int:
    """The most memory that this process has ever used, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024
