"""Jobs that are handed in together with files."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import headrace
from tests.server.conftest import client_of, problem, run_jobs


def files(folder: Path) -> set[Path]:
    """Every file below a folder."""
    return {path for path in folder.rglob("*") if path.is_file()}


def kept(folder: Path) -> list[Path]:
    """Every file in the artifacts folder."""
    return sorted(files(folder / "artifacts"))


async def upload(
    client: httpx.AsyncClient, content: bytes = b"hello", name: str = "a.txt", **fields: Any
) -> httpx.Response:
    data = {"task": "ingest", **fields}
    return await client.post("/jobs", data=data, files={"file": (name, content, "text/plain")})


async def test_a_file_becomes_an_artifact_and_its_path_the_argument(
    client: httpx.AsyncClient, app: headrace.App, tmp_path: Path
) -> None:
    answer = await upload(client, args=json.dumps({"language": "ko"}), priority="5", queue="docs")
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert job["args"] == {"file": f"bronze/{job['job_id']}/0/a.txt", "language": "ko"}
    assert (job["priority"], job["queue"]) == (5, "docs")
    await run_jobs(app)
    assert (await app.get(job["job_id"])).result == 5
    [file] = (await client.get(f"/jobs/{job['job_id']}/artifacts")).json()["artifacts"]
    assert (file["layer"], file["name"], file["size"]) == ("bronze", "a.txt", 5)
    got = await client.get(f"/jobs/{job['job_id']}/artifacts/bronze/a.txt")
    assert got.content == b"hello"
    assert len(kept(tmp_path)) == 1


async def test_a_file_that_makes_no_job_is_not_kept(
    local: httpx.AsyncClient, local_app: headrace.App, tmp_path: Path
) -> None:
    problem(await upload(local, task="nope"), 422, "unknown-task")
    problem(await upload(local, args='{"language": 1}'), 422, "invalid-arguments")
    problem(await upload(local, args="{"), 400, "malformed-json")
    problem(await upload(local, args='{"file": "x"}'), 422)
    problem(await upload(local, nonsense="1"), 422)
    no_file = await local.post("/jobs", data={"task": "ingest"}, files={})
    assert no_file.status_code in (415, 422)
    assert kept(tmp_path) == []
    first = await upload(local, key="once")
    again = await upload(local, b"other", key="once")
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["job_id"] == again.json()["job_id"]
    assert [path.read_bytes() for path in kept(tmp_path)] == [b"hello"]
    assert len((await local_app.list()).jobs) == 1


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..", "", "/abs", "a\\b\\c.txt", "x" * 500, "é\u202e.txt", "a\nb"]
)
async def test_the_name_of_a_file_leads_nowhere_else(
    local: httpx.AsyncClient, tmp_path: Path, name: str
) -> None:
    before = files(tmp_path)
    answer = await upload(local, name=name)
    assert answer.status_code in (202, 400, 422), answer.text
    for new in files(tmp_path) - before:
        assert tmp_path / "artifacts" / "bronze" in new.parents or new.name.startswith("jobs.db")
    if answer.status_code == 202:
        job = answer.json()
        [file] = (await local.get(f"/jobs/{job['job_id']}/artifacts")).json()["artifacts"]
        path = f"/jobs/{job['job_id']}/artifacts/bronze/{quote(file['name'])}"
        assert (await local.get(path)).content == b"hello"


async def test_what_a_caller_says_of_files_is_not_believed(
    local: httpx.AsyncClient, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    forged = {"argument": "../../../..", "name": "secret", "path": "../secret", "size": 6}
    body = {"task": "add", "args": {"a": 1, "b": 1}, "meta": {"files": [forged, 7]}}
    job = (await local.post("/jobs", json=body)).json()
    body["meta"] = {"files": [forged]}
    other = (await local.post("/jobs", json=body)).json()
    for each in (job, other):
        listed = await local.get(f"/jobs/{each['job_id']}/artifacts")
        assert listed.json()["artifacts"] == []


async def test_an_upload_is_bounded(local_app: headrace.App, tmp_path: Path) -> None:
    async with client_of(local_app, upload_limit=100_000) as client:
        assert (await upload(client, b"x" * 90_000)).status_code == 202
        with suppress(httpx.WriteError, httpx.ReadError):  # it may hang up on us as well
            problem(await upload(client, b"x" * 400_000), 413, "payload-too-large")
        assert len(kept(tmp_path)) == 1
