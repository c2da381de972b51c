"""A store that goes away, comes back, says no, or is full."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import stat
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from headrace.artifacts import ArtifactStore, open_store, place
from headrace.artifacts.content import CHUNK
from headrace.errors import (
    ArtifactNotFound,
    EngineError,
    EngineUnavailable,
    StorageFull,
)
from headrace.model.ids import new_id
from tests.artifacts.conftest import Objects, sign_in
from tests.artifacts.test_store import files
from tests.support.objects import S3Server

LIMIT = 60.0


def a_place(name: str = "a.bin") -> str:
    return place("bronze", new_id(), 1, name)


@pytest.fixture
def frail() -> Iterator[S3Server]:
    """An S3 server of its own, which the test may stop and start."""
    server = S3Server()
    server.start()
    yield server
    server.destroy()


async def test_a_bucket_that_comes_back_in_time_is_no_trouble(
    frail: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(frail, monkeypatch)
    store = open_store(frail.artifacts("x"))
    kept = await store.put(a_place(), b"before")
    under_way = asyncio.Event()

    async def streamed() -> AsyncIterator[bytes]:
        for number in range(24):
            if number == 12:
                under_way.set()
            yield bytes([number]) * CHUNK

    path = a_place("stream")
    streaming = asyncio.create_task(store.put(path, streamed()))
    async with asyncio.timeout(LIMIT):
        await under_way.wait()
    await asyncio.to_thread(frail.kill)
    others = asyncio.gather(
        store.put(a_place(), b"meanwhile"), store.get(kept.path), store.size(kept.path)
    )
    await asyncio.sleep(0.3)
    assert not others.done()
    await asyncio.to_thread(frail.start)
    async with asyncio.timeout(LIMIT):
        stored, content, size = await others
        assert (content, size) == (b"before", 6)
        assert await store.get(stored.path) == b"meanwhile"
        large = await streaming
    assert large.size == 24 * CHUNK
    whole = await store.get(path, sha256=large.sha256)
    assert whole[:: 1 * CHUNK] == bytes(range(24))


async def test_a_bucket_that_stays_away_is_told_in_time(
    frail: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(frail, monkeypatch)
    store = ArtifactStore(open_store(frail.artifacts("x")).backend, pauses=(0.1, 0.2))
    kept = await store.put(a_place(), b"x")
    frail.kill()
    began = time.monotonic()
    with pytest.raises(EngineUnavailable) as raised:
        await store.put(a_place(), b"y")
    with pytest.raises(EngineUnavailable):
        await store.get(kept.path)
    with pytest.raises(EngineUnavailable):
        await store.remove_job(new_id())
    assert time.monotonic() - began < 15
    assert frail.endpoint in str(raised.value)
    assert frail.secret_key not in str(raised.value)


async def test_wrong_credentials_are_told_and_never_shown(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = objects.get()
    sign_in(server, monkeypatch)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    store = open_store(server.artifacts("x"))
    for verb in (store.put(a_place(), b"x"), store.get(a_place()), store.remove_job(new_id())):
        began = time.monotonic()
        with pytest.raises(EngineError, match="check AWS_ACCESS_KEY_ID") as raised:
            await verb
        assert not isinstance(raised.value, EngineUnavailable)
        assert time.monotonic() - began < 5, "asking again does not help"
        told = f"{raised.value!r} {raised.value.__cause__!r} {store!r} {caplog.text}"
        assert "not-the-secret" not in told
        assert server.access_key not in told


async def test_a_folder_that_comes_back_in_time_is_no_trouble(tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    store = open_store(folder)
    kept = await store.put(a_place(), b"before")
    # What a mount that is gone looks like: something else is in its place.
    folder.rename(tmp_path / "away")
    folder.write_text("not mounted")
    others = asyncio.gather(
        store.put(a_place(), b"meanwhile"), store.get(kept.path), store.size(kept.path)
    )
    await asyncio.sleep(0.3)
    assert not others.done()
    folder.unlink()
    (tmp_path / "away").rename(folder)
    async with asyncio.timeout(LIMIT):
        stored, content, size = await others
    assert (content, size) == (b"before", 6)
    assert await store.get(stored.path) == b"meanwhile"


async def test_a_folder_that_stays_away_is_told(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("not a folder")
    store = ArtifactStore(open_store(tmp_path / "artifacts").backend, pauses=(0.01,))
    with pytest.raises(EngineUnavailable, match="Not a directory"):
        await store.put(a_place(), b"x")


async def test_a_store_is_checked_without_writing(
    store: ArtifactStore, objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await store.put(a_place(), b"x")
    await store.check()
    await store.remove(kept.path)
    assert files(tmp_path) == []
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(EngineUnavailable, match="Not a directory"):
        await open_store(tmp_path / "file").check()
    server = objects.get()
    sign_in(server, monkeypatch)
    with pytest.raises(EngineUnavailable, match="s3://bucket at"):
        await open_store("s3://bucket?endpoint=http://127.0.0.1:9").check()
    absent = open_store(f"s3://no-such-bucket?endpoint={server.endpoint}")
    for verb in (absent.check(), absent.remove_job(new_id()), absent.get(a_place())):
        with pytest.raises((EngineError, ArtifactNotFound), match=r"no such bucket|no artifact"):
            await verb


async def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * CHUNK, hard))
    try:
        with pytest.raises(StorageFull, match="make room"):
            await store.put(a_place(), b"x" * 4 * CHUNK)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []


async def test_what_a_killed_writer_left_is_removed_later(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    kept = await store.put(a_place(), b"kept")
    incoming = tmp_path / "bronze" / ".incoming"
    (incoming / "old").write_bytes(b"half")
    (incoming / "new").write_bytes(b"half")
    os.utime(incoming / "old", (0, time.time() - 90_000))
    await store.tidy()
    assert [file.name for file in files(tmp_path)] == ["new", "a.bin"]
    assert await store.get(kept.path) == b"kept"


async def test_files_can_be_read_by_whom_the_folder_is_for(tmp_path: Path) -> None:
    stored = await open_store(tmp_path).put(a_place(), b"x")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / stored.path).stat().st_mode) == 0o660 & ~mask


async def test_a_file_that_vanishes_is_not_found(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    stored = await store.put(a_place(), b"x")
    (tmp_path / stored.path).unlink()
    with pytest.raises(ArtifactNotFound, match="HEADRACE_ARTIFACTS is another folder"):
        await store.get(stored.path)
