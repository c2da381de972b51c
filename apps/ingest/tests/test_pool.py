"""Processes that read documents are replaced when they hang or were killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from ingest_support.pdf import hanging_pdf

from headrace import ParserError, ValidationError
from headrace_ingest.parsing.parse import MEMORY_LIMIT
from headrace_ingest.parsing.pool import MODULE, ParserPool
from headrace_ingest.processes import ChildProcess


async def bytes_of(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.fixture
async def pool() -> AsyncIterator[ParserPool]:
    made = ParserPool(1, seconds=20)
    yield made
    await made.close()


async def read(pool: ParserPool, content: bytes, name: str) -> str:
    return (await pool.parse(bytes_of(content), len(content), name)).text


async def test_a_process_is_used_again_and_replaced_if_it_was_killed(pool: ParserPool) -> None:
    assert await read(pool, b"one", "a.txt") == "one"
    (child,) = pool._idle
    assert await read(pool, b"two", "b.txt") == "two"
    assert pool._idle == [child]
    os.kill(child._process.pid, signal.SIGKILL)
    await child._process.wait()
    assert await read(pool, b"three", "c.txt") == "three"
    assert pool._idle != [child]


async def test_the_time_for_a_document_begins_when_a_process_listens() -> None:
    child = await ChildProcess.start(MODULE, str(MEMORY_LIMIT))
    try:
        # It has come so far, however long that took.
        assert psutil.Process(child._process.pid).rlimit(psutil.RLIMIT_AS)[0] == MEMORY_LIMIT
    finally:
        await child.kill()
    with pytest.raises(asyncio.IncompleteReadError):
        await ChildProcess.start(MODULE, "no number")


async def test_one_that_hangs_is_killed_and_the_next_document_is_read(pool: ParserPool) -> None:
    assert await read(pool, b"one", "a.txt") == "one"
    pool.seconds = 1
    with pytest.raises(ParserError, match=r"was not read within 1 s"):
        await read(pool, hanging_pdf(), "hangs.pdf")
    assert pool._idle == []
    pool.seconds = 20
    assert await read(pool, b"two", "b.txt") == "two"


async def test_one_that_takes_all_memory_is_told_of_its_limit() -> None:
    pool = ParserPool(1, seconds=60, memory_limit=700 * 2**20)
    try:
        with pytest.raises(ParserError, match=r"more than 700 MiB of memory|within 700 MiB"):
            await read(pool, hanging_pdf(depth=12, pages=1), "grows.pdf")
    finally:
        await pool.close()


async def test_a_process_sees_no_settings(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_INGEST_KEY", "hush")
    assert await read(pool, b"one", "a.txt") == "one"
    (child,) = pool._idle
    environment = Path(f"/proc/{child._process.pid}/environ")
    assert b"hush" not in await asyncio.to_thread(environment.read_bytes)


async def test_an_error_keeps_its_kind(pool: ParserPool) -> None:
    with pytest.raises((ParserError, ValidationError), match=r"is empty"):
        await read(pool, b"", "empty.txt")
