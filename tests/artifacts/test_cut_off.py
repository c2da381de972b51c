"""Connections that break and processes that are killed in the middle of a file."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace.artifacts import ArtifactStore, place
from headrace.errors import ArtifactNotFound
from headrace.model.ids import new_id
from tests.client.scripted_server import Act, answer, hang_up, scripted

DATA = bytes(range(256)) * 400
TAG = f'"{hashlib.sha256(DATA).hexdigest()}"'
ROOT = Path(__file__).parents[2]


def cut(start: int, end: int) -> Act:
    """Promise the rest of the file, send a part of it, and hang up."""
    status = "206 Partial" if start else "200 OK"
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(DATA) - start}\r\nETag: {TAG}\r\n\r\n"

    async def act(writer: asyncio.StreamWriter) -> bool:
        writer.write(head.encode() + DATA[start:end])
        await writer.drain()
        return False

    return act


async def test_a_download_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    rest = answer(206, DATA[90_000:], "application/octet-stream", ETag=TAG)
    script = (cut(0, 50_000), hang_up, cut(50_000, 90_000), rest)
    async with scripted(*script) as server, headrace.Client(server.url) as client:
        await client.download_to(new_id(), "a b", tmp_path / "got", layer="gold")
    assert (tmp_path / "got").read_bytes() == DATA
    asked = [(each.headers.get("range"), each.headers.get("if-range")) for each in server.requests]
    assert asked == [
        (None, None),
        ("bytes=50000-", TAG),
        ("bytes=50000-", TAG),
        ("bytes=90000-", TAG),
    ]
    assert server.requests[0].path.endswith("/artifacts/gold/a%20b")


async def test_a_file_that_was_replaced_meanwhile_is_not_patched_together(tmp_path: Path) -> None:
    whole = answer(200, DATA[::-1], "application/octet-stream", ETag='"other"')
    async with scripted(cut(0, 50_000), whole) as server, headrace.Client(server.url) as client:
        with pytest.raises(headrace.HeadraceError, match="was replaced while"):
            await client.download_to(new_id(), "a", tmp_path / "got")
    assert not (tmp_path / "got").exists()


async def test_a_download_is_given_up_after_the_retries(tmp_path: Path) -> None:
    async with scripted(hang_up) as server, headrace.Client(server.url, retries=1) as client:
        with pytest.raises(headrace.EngineUnavailable):
            await client.download(new_id(), "a")
        assert len(server.requests) == 2


PROGRAM = """
import asyncio, sys
from headrace.artifacts import open_store

async def main():
    async def endless():
        while True:
            for _ in range(20):
                yield b"x" * 1_048_576
            print("half", flush=True)
            await asyncio.sleep(3_600)
    await open_store(sys.argv[1]).put(sys.argv[2], endless())

asyncio.run(main())
"""


def write_and_be_killed(setting: str, path: str) -> None:
    """Begin to write in a process of its own, and kill it half-way."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, setting, path],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    ) as writing:
        assert writing.stdout is not None
        try:
            assert writing.stdout.readline() == b"half\n"
        finally:
            writing.kill()


async def test_what_a_killed_process_was_writing_is_never_seen(
    store: ArtifactStore, setting: str
) -> None:
    path = place("gold", new_id(), 1, "large")
    await asyncio.to_thread(write_and_be_killed, setting, path)
    with pytest.raises(ArtifactNotFound):
        await store.size(path)
    # And whoever tries again has no trouble with what was left.
    stored = await store.put(path, b"whole")
    assert await store.get(path, sha256=stored.sha256) == b"whole"
