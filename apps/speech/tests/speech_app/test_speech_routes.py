"""The routes: shapes that callers rely on, ranges, users of keys, and clear refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from speech_app.conftest import Make
from speech_support.making import Made
from speech_support.speech_server import SpeechServer

import headrace
import headrace.server
from headrace.admin.keys import create_key

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

BODY: dict[str, Any] = {
    "provider": "openai",
    "turns": [{"role": "Ann", "text": "Hello"}, {"role": "Bob", "text": "Good morning"}],
    "voice_assignments": {"Ann": "alloy", "Bob": "echo"},
}
UNKNOWN = "01a1e876-29f4-7421-95c3-62c492c6cf04"


@pytest.fixture
async def made(make: Make) -> AsyncIterator[Made]:
    async with make() as opened:
        yield opened


@pytest.fixture
async def client(made: Made) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(headrace.server.create(made.app))
    base = "http://localhost/speech"
    async with httpx.AsyncClient(transport=transport, base_url=base) as opened:
        yield opened


async def work(made: Made) -> None:
    await headrace.JobOrchestrator(made.app).run_until_idle()


async def test_a_script_is_handed_in_followed_heard_and_deleted(
    made: Made, client: httpx.AsyncClient
) -> None:
    answer = await client.post("/jobs", json=BODY)
    assert answer.status_code == 202, answer.text
    assert set(answer.json()) == {"job_id", "status"}
    job = f"/jobs/{answer.json()['job_id']}"
    before = (await client.get(job)).json()
    assert {"job_id", "status", "retry_count", "error_message", "audio_file_id"} <= set(before)
    assert (before["status"], before["audio_file_id"], before["user"]) == ("pending", None, "local")
    turns = (await client.get(f"{job}/turns")).json()["turns"]
    assert [turn["spoken"] for turn in turns] == [False, False]
    assert (await client.get(f"{job}/turns/1")).status_code == 404
    await work(made)
    done = (await client.get(job)).json()
    assert (done["status"], done["retry_count"], done["error_message"]) == ("completed", 0, None)
    audio = f"/audio/{done['audio_file_id']}"
    whole = await client.get(audio)
    assert (whole.status_code, whole.headers["content-type"]) == (200, "audio/mpeg")
    assert whole.headers["accept-ranges"] == "bytes"
    part = await client.get(audio, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(whole.content)}"
    head = await client.head(audio)
    assert (head.headers["content-length"], head.content) == (str(len(whole.content)), b"")
    details = (await client.get(f"{audio}/details")).json()
    assert details["path"] == f"storage/openai/{done['audio_file_id']}.mp3"
    assert details["checksum"] == whole.headers["etag"].strip('"')
    turns = (await client.get(f"{job}/turns")).json()["turns"]
    assert [(turn["role"], turn["spoken"]) for turn in turns] == [("Ann", True), ("Bob", True)]
    first = await client.get(f"{job}/turns/1", headers={"Range": "bytes=0-3"})
    assert (first.status_code, first.content) == (206, b"RIFF")
    assert (await client.get(f"{job}/turns/3")).status_code == 404
    listed = (await client.get("/audio")).json()["audio_files"]
    assert [each["audio_file_id"] for each in listed] == [done["audio_file_id"]]
    assert (await client.post(f"{job}/retry")).status_code == 409
    assert (await client.delete(audio)).status_code == 204
    for path in (audio, f"{audio}/details", job, f"{job}/turns"):
        assert (await client.get(path)).status_code == 404, path
    assert (await client.delete(audio)).status_code == 404
    assert (await client.get("/jobs")).json()["jobs"] == []


async def test_jobs_are_those_of_the_user_of_the_key(made: Made, client: httpx.AsyncClient) -> None:
    secrets = {}
    for user in ("ada", "bob"):
        _, secret = await create_key(made.app, name=user, scope="write", user=user)
        secrets[user] = {"Authorization": f"Bearer {secret}"}
    for user, headers in secrets.items():
        assert (await client.post("/jobs", json=BODY, headers=headers)).status_code == 202
        listed = await client.get("/jobs", params={"user": user}, headers=headers)
        assert [each["user"] for each in listed.json()["jobs"]] == [user]
    everybody = (await client.get("/jobs", headers=secrets["ada"])).json()["jobs"]
    assert [each["user"] for each in everybody] == ["bob", "ada"]
    lanes = {(await made.app.get(each["job_id"])).lane for each in everybody}
    assert lanes == {"user:ada", "user:bob"}
    assert (await client.post("/jobs", json=BODY)).status_code == 401


async def test_jobs_are_listed_by_status_and_time(made: Made, client: httpx.AsyncClient) -> None:
    first = (await client.post("/jobs", json=BODY)).json()["job_id"]
    await work(made)
    second = (await client.post("/jobs", json=BODY)).json()["job_id"]

    async def found(**params: str) -> list[str]:
        answer = await client.get("/jobs", params=params)
        assert answer.status_code == 200, answer.text
        return [each["job_id"] for each in answer.json()["jobs"]]

    assert await found() == [second, first]
    assert await found(status="pending") == [second]
    assert await found(status="completed", user="local") == [first]
    moment = (await made.app.get(second)).created_at.isoformat()
    assert await found(created_after=moment) == [second]
    assert await found(created_before=moment) == [first]
    page = (await client.get("/jobs", params={"limit": 1})).json()
    assert await found(cursor=page["next"]) == [first]


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"provider": "nobody"}, "provider", 'is "nobody", which is not known here; use one of'),
        ({"turns": []}, "turns", "is empty"),
        ({"turns": BODY["turns"] * 5_000}, "turns", "has 10,000 entries"),
        ({"turns": [{"role": "Ann", "text": "a" * 5_000}]}, "turns[0].text", "5,000 characters"),
        ({"turns": [{"role": "Ann", "text": "a\u0000"}]}, "turns[0].text", "control character"),
        ({"turns": [{"role": "Eve", "text": "Hi"}]}, "turns[0].role", "has no voice"),
        ({"voice_assignments": {}}, "turns[0].role", "has no voice"),
        (
            {"voice_assignments": {"Ann": "alloy", "Bob": "robot"}},
            'voice_assignments["Bob"]',
            'is "robot", a voice that provider "openai" does not have',
        ),
    ],
)
async def test_a_wrong_script_is_refused_at_once(
    made: Made, client: httpx.AsyncClient, change: dict[str, Any], field: str, said: str
) -> None:
    answer = await client.post("/jobs", json={**BODY, **change})
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert said in problem["detail"]
    assert problem["field"] == field
    assert problem["remedy"] in problem["detail"]
    assert "value" in problem
    assert (await made.app.list()).jobs == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"turns": "a", "voice_assignments": {}}',
        b'{"turns": [{"role": "A"}], "voice_assignments": {}}',
        b'{"turns": [{"role": "A", "text": 3}], "voice_assignments": {}}',
        b'{"turns": [{"role": "A", "text": "\\ud800"}], "voice_assignments": {"A": "alloy"}}',
        b'{"turns": [], "voice_assignments": {}, "voice": "x"}',
        b'{"format": "ogg", "turns": [], "voice_assignments": {}}',
    ],
)
async def test_a_wrong_body_is_refused(made: Made, client: httpx.AsyncClient, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await client.post("/jobs", content=body, headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert (await made.app.list()).jobs == []


async def test_a_huge_body_is_refused(client: httpx.AsyncClient) -> None:
    turns = [{"role": "Ann", "text": "a" * 3_000_000}]
    answer = await client.post("/jobs", json={**BODY, "turns": turns})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "query",
    [
        "/jobs?status=done",
        "/jobs?limit=0",
        "/jobs?limit=201",
        "/jobs?cursor=x",
        "/jobs?created_after=yesterday",
        "/jobs?user=%00",
        "/audio?cursor=x",
        "/audio?created_before=1",
        "/voices?provider=nobody",
    ],
)
async def test_a_wrong_question_is_refused(client: httpx.AsyncClient, query: str) -> None:
    assert (await client.get(query)).status_code == 422


@pytest.mark.parametrize("wrong", ["x", "%00", UNKNOWN])
async def test_what_is_not_there_is_not_found(client: httpx.AsyncClient, wrong: str) -> None:
    for method, path in (
        ("GET", f"/jobs/{wrong}"),
        ("GET", f"/jobs/{wrong}/turns"),
        ("GET", f"/jobs/{wrong}/turns/1"),
        ("POST", f"/jobs/{wrong}/retry"),
        ("DELETE", f"/jobs/{wrong}"),
        ("GET", f"/audio/{wrong}"),
        ("DELETE", f"/audio/{wrong}"),
    ):
        assert (await client.request(method, path)).status_code == 404, path


async def test_a_job_of_another_task_is_none_of_ours(made: Made, client: httpx.AsyncClient) -> None:
    job = await made.app.enqueue("speech.tidy")
    for method, rest in (("GET", ""), ("GET", "/turns"), ("POST", "/retry"), ("DELETE", "")):
        assert (await client.request(method, f"/jobs/{job.id}{rest}")).status_code == 404
    assert (await made.app.get(job.id)).status == "pending"


async def test_voices_are_listed(client: httpx.AsyncClient, server: SpeechServer) -> None:
    hosted = (await client.get("/voices?provider=openai")).json()
    assert {"voice": "alloy", "name": "Alloy", "language": None, "gender": None} in hosted["voices"]
    local = (await client.get("/voices")).json()
    assert {"ko", "en-us"} <= {each["voice"] for each in local["voices"]}
    assert "f3" in {each["voice"] for each in local["variants"]}
    english = (await client.get("/voices?language=en")).json()["voices"]
    assert english
    assert all(each["language"].startswith("en") for each in english)
    known = (await client.get("/providers")).json()
    assert (known["providers"], known["at_once"]) == (["local", "openai"], 3)


async def test_the_page_is_served(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    assert page.status_code == 200
    assert "<title>Speech" in page.text
    for name in ("speech.js", "server.js", "dialogue.js", "speech.css", "icon.svg"):
        assert (await client.get(f"/{name}")).status_code == 200, name
