"""A thousand requests that mean no good: none breaks anything, none changes anything."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import httpx
import pytest

import headrace
from headrace.server.http.body import too_deep
from headrace.server.http.body_limits import DEEPEST
from tests.server.conftest import client_of, problem

TEXTS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "\r\nX-Injected: 1",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%ff%fe",
    "'; DROP TABLE job; --",
    '" OR ""="',
    "{{7*7}}",
    "${jndi:ldap://127.0.0.1/x}",
    "<script>alert(1)</script>",
    "\u202e\ufeff",
    "😀" * 200,
    "A" * 3_000,
    "-1",
    "1e999",
    "NaN",
    "null",
    "true",
    "[]",
    "{}",
    "{a}",
    "{a.__class__}",
    "{0}",
    "{",
    "EVAL return 1",
    "* FLUSHALL\r\n",
]
VALUES: list[Any] = [
    *TEXTS,
    None,
    True,
    0,
    -1,
    2**53,
    2**64,
    10**400,
    -0.0,
    1e308,
    [],
    {},
    [[[[]]]],
    {"a": {"a": {}}},
    ["x"] * 500,
]
FIELDS = ("task", "args", "queue", "priority", "delay", "run_at", "key", "lane", "meta", "x")
PATHS = (
    "/jobs/{}",
    "/jobs/{}/result",
    "/jobs/{}/why",
    "/jobs/{}/entries",
    "/jobs/{}/artifacts",
    "/jobs/{}/artifacts/bronze/{}",
    "/queues/{}/pause/{}",
    "/schedules/{}",
    "/dead-letters/{}",
    "/{}",
)
QUERIES = ("/jobs", "/lanes", "/audit", "/events", "/workers", "/metrics")
NAMES = ("status", "queue", "task", "lane", "key", "source", "since", "until", "limit", "cursor")
RAW = [
    b"",
    b"{",
    b"}",
    b"[]",
    b"null",
    b'"',
    b"\xff\xfe\x00",
    b'{"task": "add", "args": {"a": 1, "b": 2}',
    b'{"task": "add", "task": 1}',
    b'{"task": "\xff"}',
    b'{"task": "\\ud800"}',
    b"[" * 5_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"task": "add", "args": ' + b'{"a":' * 2_000 + b"1" + b"}" * 2_000 + b"}",
    b'{"a":' * 300_000,
    b'"' + b'\\"' * 200_000,
    b"9" * 100_000,
    b'{"task": "add", "args": {"a": ' + b"9" * 5_000 + b', "b": 1}}',
    b'{"task": "add", "args": {"a": 1e400, "b": 1}}',
    b"x" * 1_200_000,
    b'{"task": "add", "args": {"a": 1, "b": 2, "c": "' + b"x" * 1_200_000 + b'"}}',
]


def requests(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """So many requests, different each and the same in every run."""
    made: list[dict[str, Any]] = [
        {"method": "POST", "url": path, "content": raw, "headers": {"Content-Type": kind}}
        for raw in RAW
        for path in ("/jobs", "/jobs/batch", "/jobs/bulk", "/keys")
        for kind in ("application/json",)
    ]
    while len(made) < count:
        match chance.randrange(6):
            case 0:
                body = {"task": "add", "args": {"a": 1, "b": 2}}
                body[chance.choice(FIELDS)] = chance.choice(VALUES)
                body[chance.choice(FIELDS)] = chance.choice(VALUES)
                # Never one that is right by chance: nothing may be changed.
                body["args"] = {"a": chance.choice(VALUES[:-14]), "b": chance.choice(VALUES)}
                made.append({"method": "POST", "url": "/jobs", "json": body})
            case 1:
                path = chance.choice(PATHS)
                filled = path.format(*(_quoted(chance.choice(TEXTS)) for _ in range(2)))
                made.append(
                    {"method": chance.choice(("GET", "POST", "DELETE", "PUT")), "url": filled}
                )
            case 2:
                url = chance.choice([each for each in QUERIES if each != "/events"])
                params = {chance.choice(NAMES): str(chance.choice(VALUES)) for _ in range(2)}
                made.append({"method": "GET", "url": url, "params": params})
            case 3:
                kind = chance.choice(("text/plain", "", "application/xml", "multipart/form-data"))
                raw = chance.choice(RAW[:10])
                headers = {"Content-Type": kind}
                made.append({"method": "POST", "url": "/jobs", "content": raw, "headers": headers})
            case 4:
                fields = {name: chance.choice(VALUES) for name in chance.sample(FIELDS, 3)}
                body = {"action": chance.choice(VALUES), "filter": fields}
                made.append({"method": "POST", "url": "/jobs/bulk", "json": body})
            case _:
                header = chance.choice(("Authorization", "X-API-Key", "Last-Event-ID", "Cookie"))
                text = chance.choice(TEXTS).encode("utf-8").translate(None, b"\r\n\0").strip()
                made.append({"method": "GET", "url": "/nope", "headers": {header: text}})
    return made


def _quoted(text: str) -> str:
    return httpx.QueryParams({"x": text}).__str__()[2:].replace("+", "%20") or "%20"


async def test_a_thousand_hostile_requests_change_nothing(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    app = local_app
    job = await app.enqueue("add", {"a": 1, "b": 2}, delay=3_600)
    before = (await app.get(job.id)).to_dict()
    chance = random.Random(4)
    answers: dict[int, int] = {}
    limit = asyncio.Semaphore(8)

    async def send(request: dict[str, Any]) -> None:
        async with limit:
            if "json" in request:
                body = json.dumps(request.pop("json"), ensure_ascii=True).encode()
                request |= {"content": body, "headers": {"Content-Type": "application/json"}}
            try:
                response = await local.request(**request)
            except httpx.InvalidURL:
                return
            except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
                return  # the server closed on a body that is too large
        code = response.status_code
        answers[code] = answers.get(code, 0) + 1
        assert code < 500, (request, response.text)
        if code >= 400:
            assert response.headers["content-type"] in (
                "application/problem+json",
                "text/plain; charset=utf-8",  # uvicorn's own, for what is not HTTP
            ), (request, response.text)

    await asyncio.gather(*(send(request) for request in requests(chance, 1_100)))
    assert sum(answers.values()) >= 1_000, answers
    assert (await app.get(job.id)).to_dict() == before
    assert len((await app.list()).jobs) == 1
    assert [queue.name for queue in await app.engine.queues() if queue.paused] == []
    assert await app.engine.record_list("key") == []
    assert (await local.get("/readyz")).status_code == 200


@pytest.mark.parametrize("engine_text", ["\x00", "a\x00b", "\ud800"])
async def test_text_that_a_store_cannot_keep_is_refused_or_kept(
    client: httpx.AsyncClient, engine_text: str
) -> None:
    for body in (
        {"task": "speak", "args": {"user_id": "x", "text": engine_text}},
        {"task": "add", "args": {"a": 1, "b": 2}, "key": engine_text},
        {"task": "add", "args": {"a": 1, "b": 2}, "lane": engine_text},
        {"task": "add", "args": {"a": 1, "b": 2}, "meta": {"x": engine_text}},
    ):
        raw = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        answer = await client.post("/jobs", content=raw, headers=headers)
        assert answer.status_code in (202, 400, 422), answer.text
        if answer.status_code == 202:
            shown = (await client.get(answer.headers["location"])).json()
            assert shown["args"] == body["args"]
    job = (await client.post("/jobs", json={"task": "add", "args": {"a": 1, "b": 2}})).json()
    raw = json.dumps({"reason": engine_text}).encode()
    path = f"/jobs/{job['job_id']}/cancel"
    answer = await client.post(path, content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 400, 422), answer.text


async def test_a_body_is_cut_off_where_it_becomes_too_large(local_app: headrace.App) -> None:
    sent = 0

    async def endless() -> Any:
        nonlocal sent
        while sent < 200_000_000:
            sent += 65_536
            yield b"x" * 65_536

    async with client_of(local_app) as client:
        try:
            headers = {"Content-Type": "application/json"}
            answer = await client.post("/jobs", content=endless(), headers=headers)
            problem(answer, 413, "payload-too-large")
        except (httpx.WriteError, httpx.ReadError):
            pass  # it hung up on us, which is as good
        assert sent < 20_000_000
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        writer.write(
            b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999\r\n\r\n{"
        )
        # Refused by what it says of itself: no byte more is waited for.
        assert (await reader.readline()).split()[1] == b"413"
        writer.close()


async def test_arguments_beyond_the_limit_are_refused(local: httpx.AsyncClient) -> None:
    body = {"task": "speak", "args": {"user_id": "x", "text": "y" * 1_048_576}}
    told = problem(await local.post("/jobs", json=body), 413, "payload-too-large")
    assert "HEADRACE_PAYLOAD_LIMIT" in told["remedy"]
    meta = {"task": "speak", "args": {"user_id": "x"}, "meta": {"x": "y" * 20_000}}
    problem(await local.post("/jobs", json=meta), 413, "payload-too-large")


async def test_bad_input_is_told_with_field_value_and_remedy(local: httpx.AsyncClient) -> None:
    async def post(body: Any) -> dict[str, Any]:
        return problem(await local.post("/jobs", json=body), 422)

    assert (await post({}))["field"] == "task"
    assert (await post({"task": "add", "args": []}))["field"] == "args"
    assert (await post({"task": "add", "nope": 1}))["detail"].endswith("`nope`")
    assert 'Registered: "add"' in (await post({"task": "ad"}))["detail"]
    assert (await post({"task": "add", "args": {"a": 1}}))["field"] == "args"
    assert (await post({"task": "add", "priority": 5_000}))["field"] == "priority"
    assert (await post({"task": "add", "run_at": "2026-01-01T00:00:00"}))["field"] == "run_at"
    for moment in ("9999-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+05:00"):
        told = await post({"task": "add", "args": {"a": 1, "b": 2}, "run_at": moment})
        assert (told["field"], told["value"]) == ("run_at", moment)
        assert told["remedy"] == "choose a time within them"
    told = await post({"task": "add", "delay": 1e300})
    assert told["field"] == "delay"
    told = problem(await local.get("/jobs?limit=0"), 422)
    assert (told["field"], told["value"]) == ("limit", "0")
    told = problem(await local.get("/jobs?since=yesterday"), 422)
    assert (told["field"], told["value"]) == ("since", "yesterday")
    assert "2026-01-31T08:00:00Z" in told["remedy"]
    plain = await local.post("/jobs", content=b"{}", headers={"Content-Type": "text/plain"})
    assert "application/json" in problem(plain, 415)["remedy"]


def test_depth_is_counted_outside_of_texts() -> None:
    deep = b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1)
    assert too_deep(deep)
    assert not too_deep(deep[1:-1])
    assert not too_deep(b'["' + b"[" * 500 + b'"]')
    assert not too_deep(b'["\\"' + b"[" * 500 + b'"]')
    assert not too_deep(b"[]" * 500)
    assert too_deep(b'{"a":' * 101)
