"""What every store promises, in a folder and in a bucket."""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.artifacts import ArtifactStore, open_store, place, s3
from headrace.artifacts.content import CHUNK
from headrace.errors import ArtifactNotFound, EngineError, InvalidInput, InvalidName
from headrace.model.ids import new_id
from tests.artifacts.conftest import chunks

DATA = bytes(range(256)) * 5_000
JOB = "01980000-0000-7000-8000-000000000000"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def a_place(name: str = "a.bin", layer: str = "bronze", job_id: str | None = None) -> str:
    return place(layer, job_id or new_id(), 1, name)


def files(folder: Path, pattern: str = "*") -> list[Path]:
    """Every file below a folder."""
    return sorted(path for path in folder.rglob(pattern) if path.is_file())


def _file(folder: Path) -> Path:
    file = folder / "source"
    file.write_bytes(DATA)
    return file


def _parts() -> Iterator[bytes]:
    for start in range(0, len(DATA), 100_000):
        yield DATA[start : start + 100_000]
        yield b""


CONTENTS: dict[str, Callable[[Path], Any]] = {
    "bytes": lambda _: DATA,
    "bytearray": lambda _: bytearray(DATA),
    "memoryview": lambda _: memoryview(DATA),
    "path": _file,
    "file": lambda _: io.BytesIO(DATA),
    "list": lambda _: list(_parts()),
    "iterator": lambda _: _parts(),
    "stream": lambda _: chunks(DATA[:1], b"", bytearray(DATA[1:700_000]), DATA[700_000:]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("kind", CONTENTS)
async def test_content_of_every_kind_comes_back(
    store: ArtifactStore, tmp_path: Path, kind: str
) -> None:
    path = a_place()
    stored = await store.put(path, CONTENTS[kind](tmp_path), media_type="application/x-test")
    assert (stored.path, stored.size, stored.sha256) == (path, len(DATA), sha256(DATA))
    assert await store.get(path, sha256=stored.sha256) == DATA
    assert await store.size(path) == len(DATA)


async def test_an_empty_file_is_a_file(store: ArtifactStore) -> None:
    for content in (b"", chunks(), chunks(b""), iter([b""]), io.BytesIO()):
        path = a_place()
        stored = await store.put(path, content)
        assert (stored.size, stored.sha256) == (0, sha256(b""))
        assert await store.get(path, sha256=stored.sha256) == b""


async def test_a_part_of_a_file(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.artifacts.store.READ_CHUNK", 10)
    path = a_place()
    await store.put(path, DATA[:100])
    for start, end in [(0, 5), (5, 35), (95, None), (99, 1_000), (100, None), (200, 300), (7, 7)]:
        got = [chunk async for chunk in store.stream(path, start=start, end=end)]
        assert b"".join(got) == DATA[:100][start:end]
        assert all(0 < len(chunk) <= 10 for chunk in got)


async def test_what_is_not_there_is_not_found(store: ArtifactStore) -> None:
    path = a_place()
    with pytest.raises(ArtifactNotFound, match="there is no artifact"):
        await store.get(path)
    with pytest.raises(ArtifactNotFound):
        await store.size(path)
    await store.remove(path)
    await store.put(a_place(), b"another")
    await store.remove_job(new_id())


@pytest.mark.parametrize("content", ["text", 7, None, [b"fine", "text"], [["x"]]])
async def test_what_is_not_bytes_is_refused(store: ArtifactStore, content: Any) -> None:
    path = a_place()
    with pytest.raises(InvalidInput, match="made of bytes"):
        await store.put(path, content)
    if isinstance(content, list):
        with pytest.raises(InvalidInput, match="made of bytes"):
            await store.put(path, chunks(*content))
    with pytest.raises(ArtifactNotFound):
        await store.size(path)


async def test_a_file_that_cannot_be_read_is_named(store: ArtifactStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent.*No such file"):
        await store.put(a_place(), tmp_path / "absent")


async def test_a_stream_that_breaks_leaves_nothing(store: ArtifactStore, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * CHUNK
        raise OSError("the other side hung up")

    path = a_place()
    with pytest.raises(OSError, match="the other side hung up"):
        await store.put(path, broken())
    with pytest.raises(ArtifactNotFound):
        await store.size(path)
    assert files(tmp_path) == []


async def test_nothing_is_visible_before_the_end(store: ArtifactStore, tmp_path: Path) -> None:
    path, begun, go_on = a_place(), asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * 9 * CHUNK
        begun.set()
        await go_on.wait()
        yield b"y"

    writing = asyncio.create_task(store.put(path, slow()))
    async with asyncio.timeout(20):
        await begun.wait()
    with pytest.raises(ArtifactNotFound):
        await store.size(path)
    go_on.set()
    assert (await writing).size == 9 * CHUNK + 1
    assert await store.size(path) == 9 * CHUNK + 1
    # And one that is given up half-way never is.
    begun.clear()
    go_on.clear()
    other = a_place()
    writing = asyncio.create_task(store.put(other, slow()))
    async with asyncio.timeout(20):
        await begun.wait()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    with pytest.raises(ArtifactNotFound):
        await store.size(other)
    assert files(tmp_path, ".incoming/*") == []


@pytest.mark.parametrize(
    "name",
    [
        "보고서/사월 최종 (1).pdf",
        "e\u0301.txt",
        "\U0001f600" * 250,
        "x" * 1_000,
        "/".join(["한" * 60] * 16),
        "deep/" * 200 + "end.csv",
        "a b+c=d&e;f:g?h#i%20j~k*l|m<n>o\"p'q`r{s}t[u]^v,w!x@y$z",
        "-rf",
        ".hidden",
        "sha256-00",
        "CON",
        "trailing ",
        "a\u202eb",
        "100%",
        "..a",
        "a..",
        "...",
    ],
)
async def test_odd_names_are_kept_as_they_are(store: ArtifactStore, name: str) -> None:
    first = await store.put(a_place(name), b"first")
    # The same path is read back by another process that knows nothing but the setting.
    assert await store.get(first.path, sha256=first.sha256) == b"first"


async def test_a_name_may_be_the_folder_of_another(store: ArtifactStore) -> None:
    job_id = new_id()
    kept = [
        await store.put(a_place(name, job_id=job_id), name.encode())
        for name in ("a", "a/b", "a/b/c", "d/e", "d")
    ]
    assert len({each.path for each in kept}) == 5
    assert [await store.get(each.path) for each in kept] == [b"a", b"a/b", b"a/b/c", b"d/e", b"d"]
    await store.remove_job(job_id)
    for each in kept:
        with pytest.raises(ArtifactNotFound):
            await store.size(each.path)


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "bronze/../../secret",
        f"bronze/{JOB}/1/../../../../secret",
        f"bronze/{JOB}/../x",
        f"bronze/{JOB}/1/",
        f"lead/{JOB}/1/x",
        "bronze/not-a-job/1/x",
        f"/bronze/{JOB}/1/x",
        f"bronze/{JOB}/1/a\x00b",
        "",
    ],
)
async def test_a_path_that_leads_elsewhere_is_refused(store: ArtifactStore, path: str) -> None:
    for verb in (store.get, store.size, store.remove):
        with pytest.raises(InvalidName):
            await verb(path)
    with pytest.raises(InvalidName):
        await store.put(path, b"")
    with pytest.raises(InvalidInput):
        await store.remove_job("../..")


async def test_damage_is_noticed(store: ArtifactStore) -> None:
    path = a_place()
    stored = await store.put(path, DATA)
    await store.put(path, DATA[:-1] + b"!")
    with pytest.raises(EngineError, match="is damaged: its checksum is"):
        await store.get(path, sha256=stored.sha256)


async def test_the_files_of_one_job_are_removed_in_every_layer(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PAGE", 4)
    job_id, neighbour = new_id(), new_id()
    for layer in ("bronze", "silver", "gold", "artifacts"):
        for number in range(10):
            await store.put(a_place(f"{number % 3}/{number}", layer, job_id), b"x")
    kept = await store.put(a_place("a", "gold", neighbour), b"y")
    await asyncio.gather(*(store.remove_job(job_id) for _ in range(3)))
    for layer in ("bronze", "silver", "gold", "artifacts"):
        with pytest.raises(ArtifactNotFound):
            await store.size(a_place("0/0", layer, job_id))
    assert await store.get(kept.path) == b"y"


async def test_large_files_go_in_parts(store: ArtifactStore, tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as made:
        for number in range(20):
            made.write(bytes([number]) * CHUNK)
    kept = [await store.put(a_place(), each) for each in (file, chunks(file.read_bytes()))]
    assert len({each.sha256 for each in kept}) == 1
    assert await store.get(kept[1].path, sha256=kept[0].sha256) == file.read_bytes()


async def test_two_stores_of_one_setting_are_one(setting: str) -> None:
    stored = await open_store(setting).put(a_place(), b"here")
    assert await open_store(setting).get(stored.path) == b"here"


def test_the_module_says_where_it_is(store: ArtifactStore, setting: str) -> None:
    assert store.where.split("?")[0].split(" at ")[0] in setting
