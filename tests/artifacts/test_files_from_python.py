"""Files that Python programs give with a job, and files for jobs that are not enqueued yet."""

from __future__ import annotations

import asyncio
import io
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import headrace
import headrace.sync
from headrace.artifacts import job_uploads, pending_uploads
from headrace.artifacts.index import HandedIn
from headrace.artifacts.names import place
from headrace.clock import Clock
from headrace.model.ids import new_id
from headrace.upkeep import Files
from tests.conftest import ENGINES, Servers, store_url

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=ENGINES)
async def app(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path, clock: Clock
) -> AsyncIterator[headrace.App]:
    url = store_url(request.param, servers, tmp_path)
    async with headrace.App(url, clock=clock, artifacts=str(tmp_path / "artifacts")) as app:

        @app.task
        async def ingest(ctx: headrace.Context, file: str, language: str = "en") -> list[Any]:
            found = await ctx.artifacts.find(file)
            by_name = await ctx.artifacts.get(found.name, layer="bronze")
            text = (await ctx.artifacts.get(file)).decode("latin-1")
            return [found.name, found.media_type, text, by_name.decode("latin-1"), language]

        @app.task
        async def compare(ctx: headrace.Context, left: str, right: str) -> list[str]:
            return [(await ctx.artifacts.get(each)).decode() for each in (left, right)]

        yield app


def stored(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "artifacts").rglob("*") if path.is_file())


async def run(app: headrace.App, job: headrace.Job) -> Any:
    await headrace.JobOrchestrator(app).run_until_idle()
    return await app.result(job.id)


async def test_a_file_goes_with_a_job_under_its_own_name(app: headrace.App, tmp_path: Path) -> None:
    (tmp_path / "규정.docx").write_bytes(PDF)
    job = await app.tasks["ingest"].options(files={"file": tmp_path / "규정.docx"}).enqueue("ko")
    assert job.args == {"file": f"bronze/{job.id}/0/규정.docx", "language": "ko"}
    text = PDF.decode("latin-1")
    assert await run(app, job) == ["규정.docx", "application/pdf", text, text, "ko"]
    [file] = await app.artifacts.list(job.id)
    assert (file.layer, file.name, file.size) == ("bronze", "규정.docx", len(PDF))
    assert file.media_type == "application/pdf"
    assert b"".join([c async for c in app.stream(job.id, "규정.docx", layer="bronze")]) == PDF


@pytest.mark.parametrize("kind", ["bytes", "named", "open", "stream", "put"])
async def test_files_are_made_of_many_things(app: headrace.App, tmp_path: Path, kind: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"he"
        yield b"llo"

    (tmp_path / "a.txt").write_bytes(b"hello")
    file: Any = {
        "bytes": b"hello",
        "named": ("b.txt", io.BytesIO(b"hello")),
        "open": None,
        "stream": chunks(),
        "put": None,
    }[kind]
    if kind == "put":
        file = await app.artifacts.put("c.txt", b"hello")
    with (tmp_path / "a.txt").open("rb") as opened:
        files = {"file": opened if kind == "open" else file}
        job, new = await app.enqueue_or_find("ingest", {"language": "ko"}, files=files)
    assert new
    name, media_type, text, _, language = await run(app, job)
    names = {"bytes": "file", "named": "b.txt", "open": "a.txt", "stream": "file", "put": "c.txt"}
    assert (name, media_type, text, language) == (names[kind], "text/plain", "hello", "ko")


async def test_the_second_of_one_name_gets_a_number(app: headrace.App) -> None:
    files = {"left": ("a.txt", b"1"), "right": ("A.TXT", b"2")}
    job = await app.enqueue("compare", files=files)
    assert job.args == {
        "left": f"bronze/{job.id}/0/a.txt",
        "right": f"bronze/{job.id}/0/A (2).TXT",
    }
    assert await run(app, job) == ["1", "2"]
    one = await app.artifacts.put("a.txt", b"3")
    job_id = one.path.split("/")[1]
    other = await app.artifacts.put("a.txt", b"4", job_id=job_id)
    assert other.name == "a (2).txt"
    job = await app.enqueue("compare", files={"left": one, "right": other})
    assert job.id == job_id
    assert await run(app, job) == ["3", "4"]
    with pytest.raises(headrace.JobConflict, match="its handler may put files"):
        await app.artifacts.put("b.txt", b"", job_id=job_id)
    with pytest.raises(headrace.JobConflict, match="put them anew"):
        await app.enqueue("compare", files={"left": one, "right": other})


def test_names_are_told_apart_and_composed() -> None:
    assert job_uploads.told_apart(["a", "a", ".b", ".b", "x.tar.gz", "x.tar.gz", "a (2)"]) == [
        *("a", "a (2)", ".b", ".b (2)", "x.tar.gz", "x.tar (2).gz", "a (2) (2)")
    ]
    assert job_uploads.file_name(unicodedata.normalize("NFD", "규정.docx")) == "규정.docx"


async def test_what_is_refused_leaves_nothing(app: headrace.App, tmp_path: Path) -> None:
    ingest = app.tasks["ingest"]
    for files, error, text in (
        ({"nothing": b"x"}, headrace.InvalidArguments, "nothing"),
        ({"file": "text"}, headrace.InvalidInput, "got text"),
        ({"file": ("a", "b", "c")}, headrace.InvalidInput, "not of a name and content"),
        ({}, headrace.InvalidInput, "give 1 to"),
    ):
        with pytest.raises(error, match=text):
            await ingest.options(files=files).enqueue()  # type: ignore[arg-type]
    with pytest.raises(headrace.InvalidArguments, match="as a file and as a value"):
        await ingest.options(files={"file": b"x"}).enqueue(file="x")
    with pytest.raises(headrace.InvalidArguments, match="as a file and as a value"):
        await app.enqueue("ingest", {"file": "x"}, files={"file": b"x"})
    with pytest.raises(headrace.InvalidSetting, match="does not keep files"):
        ingest.options(files={"file": b"x"}).job()
    with pytest.raises(headrace.InvalidSetting, match="got also files"):
        await app.enqueue(ingest.job(file="x"), files={"file": b"x"})  # type: ignore[call-overload]
    assert stored(tmp_path) == []
    assert await app.engine.record_list(pending_uploads.KIND) == []
    first = await ingest.options(files={"file": b"1"}, key="once").enqueue()
    again = await ingest.options(files={"file": b"2"}, key="once").enqueue()
    assert first.id == again.id
    assert [path.read_bytes() for path in stored(tmp_path)] == [b"1"]
    assert (await app.list()).jobs == [await app.get(first.id)]


async def test_files_of_jobs_that_never_come_are_removed(
    app: headrace.App, tmp_path: Path, clock: Clock
) -> None:
    await app.artifacts.put("a.txt", b"1")
    upkeep = Files(engine=app.engine, artifacts=app.artifact_store, clock=clock)
    await upkeep.tick()
    assert len(stored(tmp_path)) == 1
    clock.advance(3_700)
    await upkeep.tick()
    assert stored(tmp_path) == []
    assert await app.engine.record_list(pending_uploads.KIND) == []


async def test_a_child_does_not_have_the_files_of_its_parent(app: headrace.App) -> None:
    @app.task
    async def leaf() -> None: ...

    @app.task
    async def parent(ctx: headrace.Context, file: str) -> str:
        child: str = await ctx.spawn(leaf.job())
        return child

    job = await parent.options(files={"file": b"x"}).enqueue()
    child = await run(app, job)
    assert "files" in (await app.get(child)).meta
    assert await app.artifacts.list(child) == []


async def test_names_of_earlier_versions_are_still_read(app: headrace.App) -> None:
    job_id = new_id()
    path = place("bronze", job_id, 0, "file/a.txt")
    await app.artifact_store.put(path, b"hello")
    job = (
        app.tasks["ingest"]
        .options(meta={"files": [{"argument": "file", "name": "a.txt", "path": path, "size": 5}]})
        .job(file=path)
    )
    job.id = job_id
    stored_job = await app.enqueue_job(job)
    [file] = await app.artifacts.list(job_id)
    assert (file.name, file.path) == ("file/a.txt", path)
    assert await app.download(job_id, "file/a.txt", layer="bronze") == b"hello"
    assert (await run(app, stored_job))[0] == "file/a.txt"


def test_files_without_an_event_loop(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with headrace.sync.App(url, artifacts=str(tmp_path / "artifacts")) as jobs:

        @jobs.task
        def count(file: str) -> str:
            return file

        (tmp_path / "a.txt").write_bytes(b"hello")
        job = jobs.enqueue("count", files={"file": tmp_path / "a.txt"})
        [file] = jobs.artifacts.list(job.id)
        assert jobs.artifacts.get(file.path) == b"hello"
        assert b"".join(jobs.artifacts.stream(file.path, start=1)) == b"ello"
        put = jobs.artifacts.put("b.txt", b"1")
        other = jobs.enqueue("count", files={"file": put})
        assert other.args == {"file": put.path}
        assert jobs.artifacts.where == str(tmp_path / "artifacts")


async def test_a_job_in_doubt_keeps_its_files(
    app: headrace.App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(job: Any, *, connection: Any = None) -> Any:
        raise headrace.EngineUnavailable("the answer was lost")

    monkeypatch.setattr(app, "enqueue_job", lost)
    with pytest.raises(headrace.EngineUnavailable):
        await app.enqueue("ingest", files={"file": b"x"})
    assert len(stored(tmp_path)) == 1
    assert len(await app.engine.record_list(pending_uploads.KIND)) == 1


async def test_many_uploads_at_once(app: headrace.App) -> None:
    jobs = await asyncio.gather(
        *(app.enqueue("ingest", files={"file": ("a.txt", b"%d" % n)}) for n in range(20))
    )
    await headrace.JobOrchestrator(app).run_until_idle()
    results = [await app.result(job.id) for job in jobs]
    assert [result[2] for result in results] == [str(n) for n in range(20)]


def test_the_record_of_a_file_is_small() -> None:
    assert HandedIn.__struct_fields__ == (
        "argument",
        "name",
        "path",
        "size",
        "media_type",
        "sha256",
    )
