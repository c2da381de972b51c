"""Files over HTTP: listed, downloaded whole or in part, and handed in; from both kinds of store."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

import headrace
from headrace.artifacts.index import files_of
from headrace.server.http.downloads import disposition, safe_media_type
from tests.artifacts.test_store import files as files_below
from tests.server.conftest import client_of, problem, run_jobs

DATA = bytes(range(256)) * 40
LONG = "😀/" + "한" * 1_000 + ".csv"
NAMES = ["보고서 (1).csv", "a?b#c%20d&e=f+g", "deep/er/x", "..a", LONG]


@pytest.fixture
async def app(setting: str, tmp_path: Path) -> AsyncIterator[headrace.App]:
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=setting) as app:

        @app.task
        async def keep(ctx: headrace.Context) -> None:
            await ctx.artifacts.put("data", DATA, layer="gold", metadata={"pages": "7"})
            await ctx.artifacts.put("page.html", b"<script>", media_type="text/html")
            await ctx.artifacts.put("sound.mp3", b"", media_type="audio/mpeg")
            for name in NAMES:
                await ctx.artifacts.put(name, name.encode())

        @app.task
        async def read(ctx: headrace.Context, file: str) -> list[str]:
            by_path = await ctx.artifacts.get(file)
            by_name = await ctx.artifacts.get(file.split("/", 3)[3], layer="bronze")
            return [by_path.decode(), by_name.decode()]

        yield app


@pytest.fixture
async def client(app: headrace.App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def keep(client: httpx.AsyncClient, app: headrace.App) -> str:
    """A job that has kept files: the path of its artifacts."""
    job = (await client.post("/jobs", json={"task": "keep"})).json()
    await run_jobs(app)
    return f"/jobs/{job['job_id']}/artifacts"


async def test_files_are_listed_and_downloaded(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    base = await keep(client, app)
    files = (await client.get(base)).json()["artifacts"]
    first = files[0]
    assert (first["layer"], first["name"], first["size"]) == ("gold", "data", len(DATA))
    assert first["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert first["metadata"] == {"pages": "7"}
    assert first["at"]
    got = await client.get(f"{base}/gold/data")
    assert got.content == DATA
    assert got.headers["etag"] == f'"{first["sha256"]}"'
    assert got.headers["content-length"] == str(len(DATA))
    assert got.headers["accept-ranges"] == "bytes"
    for file in files:
        answer = await client.get(f"{base}/{file['layer']}/{quote(file['name'], safe='')}")
        assert answer.status_code == 200, file["name"]
        assert len(answer.content) == file["size"]
        assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
    assert [file["name"] for file in files[3:]] == NAMES


async def test_parts_are_downloaded(client: httpx.AsyncClient, app: headrace.App) -> None:
    url = f"{await keep(client, app)}/gold/data"
    size = len(DATA)
    for asked, start, end in [
        ("bytes=0-0", 0, 1),
        ("bytes=10-99", 10, 100),
        ("bytes=10000-", 10_000, size),
        ("bytes=-5", size - 5, size),
        ("bytes=5-999999", 5, size),
        ("bytes=-999999", 0, size),
    ]:
        got = await client.get(url, headers={"Range": asked})
        assert got.content == DATA[start:end], asked
        if (start, end) == (0, size):
            assert got.status_code == 200
        else:
            assert got.status_code == 206
            assert got.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
            assert got.headers["content-length"] == str(end - start)
    for whole in ("bytes=0-1,5-6", "lines=1-2", "bytes=-", "bytes=9-3", "nonsense"):
        got = await client.get(url, headers={"Range": whole})
        assert (got.status_code, got.content) == (200, DATA), whole
    for beyond in (f"bytes={size}-", "bytes=999999999-", "bytes=-0"):
        got = await client.get(url, headers={"Range": beyond})
        problem(got, 416, "range-not-satisfiable")
        assert got.headers["content-range"] == f"bytes */{size}"


async def test_what_the_caller_has_is_not_sent_again(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    url = f"{await keep(client, app)}/gold/data"
    tag = (await client.get(url)).headers["etag"]
    for asked in (tag, f'"x", W/{tag}', "*"):
        got = await client.get(url, headers={"If-None-Match": asked})
        assert (got.status_code, got.content) == (304, b"")
        assert got.headers["etag"] == tag
    assert (await client.get(url, headers={"If-None-Match": '"other"'})).status_code == 200
    part = {"Range": "bytes=0-4"}
    assert (await client.get(url, headers=part | {"If-Range": tag})).status_code == 206
    assert (await client.get(url, headers=part | {"If-Range": '"old"'})).status_code == 200


async def test_the_head_tells_what_a_download_would(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    base = await keep(client, app)
    head, got = await client.head(f"{base}/gold/data"), await client.get(f"{base}/gold/data")
    assert (head.status_code, head.content) == (200, b"")
    for name in ("etag", "content-length", "content-type", "content-disposition"):
        assert head.headers[name] == got.headers[name]
    assert (await client.head(f"{base}/gold/absent")).status_code == 404


async def test_no_browser_runs_what_is_in_a_file(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    base = await keep(client, app)
    page = await client.get(f"{base}/artifacts/page.html")
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["content-disposition"].startswith('attachment; filename="page.html"')
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["content-security-policy"].startswith("sandbox")
    sound = await client.get(f"{base}/artifacts/sound.mp3")
    assert (sound.headers["content-type"], sound.content) == ("audio/mpeg", b"")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("text/html", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("application/xhtml+xml", "application/octet-stream"),
        ("text/javascript", "application/octet-stream"),
        ("application/pdf", "application/pdf"),
        ("Image/PNG; x=y", "image/png"),
        ("text/csv; charset=cp949", "text/csv; charset=utf-8"),
        (None, "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_media_types(given: str | None, told: str) -> None:
    assert safe_media_type(given) == told


def test_a_name_cannot_break_out_of_its_header() -> None:
    told = disposition('a"; filename=evil.exe\r\nX: 한.txt')
    assert "\r" not in told
    assert told.count('"') == 2
    assert told.endswith("%ED%95%9C.txt")
    told.encode("latin-1")


async def test_what_is_not_there_is_not_found(
    client: httpx.AsyncClient, app: headrace.App, setting: str
) -> None:
    base = await keep(client, app)
    for name in ("gold/absent", "lead/data", "gold/../../data", "gold/a%00b", "gold/a%5Cb"):
        problem(await client.get(f"{base}/{name}"), 404)
    job = await app.get(base.split("/")[2])
    await app.artifact_store.remove((await files_of(app.engine, job))["gold", "data"].path)
    problem(await client.get(f"{base}/gold/data"), 404, "artifact-not-found")


async def test_a_handed_in_file_is_read_by_its_argument_and_by_its_name(
    client: httpx.AsyncClient, app: headrace.App
) -> None:
    upload = {"file": ("보고서.txt", "내용".encode(), "text/plain")}
    job = (await client.post("/jobs", data={"task": "read"}, files=upload)).json()
    await run_jobs(app)
    over = await app.get(job["job_id"])
    assert over.result == ["내용", "내용"], over.error
    [file] = (await client.get(f"/jobs/{job['job_id']}/artifacts")).json()["artifacts"]
    assert file["sha256"] == hashlib.sha256("내용".encode()).hexdigest()
    assert file["name"] == "보고서.txt"
    got = await client.get(f"/jobs/{job['job_id']}/artifacts/bronze/보고서.txt")
    assert got.text == "내용"
    assert got.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_client_downloads_and_compares(
    client: httpx.AsyncClient, app: headrace.App, tmp_path: Path
) -> None:
    base = await keep(client, app)
    job_id = base.split("/")[2]
    async with headrace.Client(str(client.base_url)) as remote:
        files = await remote.artifacts(job_id)
        assert files[0].sha256 == hashlib.sha256(DATA).hexdigest()
        for file in files:
            target = tmp_path / "target"
            await remote.download_to(job_id, file.name, target, layer=file.layer)
            content = target.read_bytes()
            assert hashlib.sha256(content).hexdigest() == file.sha256
            assert await remote.download(job_id, file.name, layer=file.layer) == content
        damaged = files[0].path
        await app.artifact_store.put(damaged, DATA[::-1])
        with pytest.raises(headrace.HeadraceError, match="is damaged"):
            await remote.download_to(job_id, "data", tmp_path / "other", layer="gold")
        assert not (tmp_path / "other").exists()
        with pytest.raises(headrace.HeadraceError, match="has no file"):
            await remote.download(job_id, "absent")
    assert files_below(tmp_path, "*.partial") == []
