"""Every route refuses a missing, wrong, revoked or too weak key. The list is the real one."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import Mount

import headrace
import headrace.server
from headrace.admin.keys import SCOPES, create_key, revoke_key
from headrace.model.ids import new_id
from headrace.server.auth import keys
from headrace.server.dashboard.mount import to_dashboard
from headrace.task.redact import Redactor
from tests.server.conftest import a_key, bearer, client_of, problem

OPEN = {"/healthz", "/readyz"}
LOCAL = {"/metrics", "/openapi.json"}
VALUES = {
    "job_id": new_id(),
    "layer": "gold",
    "name": "x",
    "key_id": "0" * 16,
    "letter_id": "kafka:orders:0:1",
    "workflow_id": "sums",
    "event": "approved",
    "bulk_id": new_id(),
    "path": f"gold/{new_id()}/1/x",
}


def routes() -> list[tuple[str, str, Any]]:
    """Method, path and needed access of every route of the API."""
    api = headrace.server.create(headrace.App("sqlite:///:memory:"))
    found = []
    for route in api.routes:
        # The dashboard has a guard of its own: see tests/dashboard/test_session.py.
        if isinstance(route, Mount) and route.name == "dashboard":
            continue
        if getattr(route, "endpoint", None) is to_dashboard:
            continue
        assert isinstance(route, APIRoute), f"{route} is not behind a guard"
        access = type(route).access  # type: ignore[attr-defined]
        # HEAD is GET without its body, behind the same guard; nothing could be read from it here.
        methods = (route.methods or set()) - {"HEAD"}
        if route.include_in_schema:
            found += [(method, route.path_format, access) for method in methods]
        else:  # HEAD, and the page that shows the API
            assert not methods or route.path.startswith("/docs")
    return sorted(found)


ROUTES = routes()
CLOSED = [route for route in ROUTES if route[2] in SCOPES]


def ask(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> Any:
    return client.request(method, path.format_map(VALUES), **options)


@pytest.fixture
async def closed(local_app: headrace.App) -> AsyncIterator[httpx.AsyncClient]:
    await a_key(local_app)
    async with client_of(local_app) as client:
        yield client


def test_the_list_of_routes_is_as_agreed() -> None:
    assert len(ROUTES) >= 30
    assert {path for _, path, access in ROUTES if access == "open"} == OPEN
    assert {path for _, path, access in ROUTES if access == "local"} == LOCAL
    needed = {(method, path): access for method, path, access in ROUTES}
    for (method, path), access in needed.items():
        if method == "GET" and path not in OPEN | LOCAL | {"/keys", "/audit"}:
            assert access == "read", path
        elif path.startswith(("/jobs", "/workflows", "/api/v2/workflows", "/artifacts", "/bulk")):
            assert access == "write", path
        elif path not in OPEN | LOCAL:
            assert access == "admin", path


async def test_no_route_answers_without_a_key(closed: httpx.AsyncClient) -> None:
    for method, path, _ in CLOSED:
        refused = await ask(closed, method, path)
        told = problem(refused, 401, "unauthorized")
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert "headrace keys create" in told["remedy"]


async def test_no_route_answers_to_a_wrong_or_revoked_key(
    closed: httpx.AsyncClient, local_app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long a guess has to wait.
    monkeypatch.setattr(keys, "NEW_AFTER", 0.001)
    key = await a_key(local_app)
    revoked, text = await create_key(local_app, name="old", scope="admin")
    await revoke_key(local_app, revoked.id)
    right = key.split("_", 2)
    wrong = [
        "x",
        "hr__",
        "hr_" + "0" * 16 + "_" + "A" * 43,
        f"hr_{right[1]}_" + "A" * 43,
        f"{key}x",
        key[:-1],
        key.upper(),
        text,
        "x" * 8_000,
    ]
    for method, path, _ in CLOSED:
        for each in wrong if path == "/jobs" else wrong[3:4] + wrong[7:8]:
            problem(await ask(closed, method, path, headers=bearer(each)), 401, "unauthorized")
            header = {"X-API-Key": each}
            problem(await ask(closed, method, path, headers=header), 401, "unauthorized")


async def test_no_route_answers_to_a_key_that_is_too_weak(
    closed: httpx.AsyncClient, local_app: headrace.App
) -> None:
    keys = {scope: await a_key(local_app, scope) for scope in SCOPES}
    for method, path, access in CLOSED:
        for scope in SCOPES[: SCOPES.index(access)]:
            told = problem(
                await ask(closed, method, path, headers=bearer(keys[scope])), 403, "forbidden"
            )
            assert access in told["detail"]
    assert (await local_app.list()).jobs == []


async def test_every_route_answers_to_a_key_that_is_strong_enough(
    closed: httpx.AsyncClient, local_app: headrace.App
) -> None:
    keys = {scope: await a_key(local_app, scope) for scope in SCOPES}
    for method, path, access in CLOSED:
        if path == "/events":
            continue  # it would never end
        for header in (bearer(keys[access]), {"X-API-Key": keys[access]}):
            answer = await ask(closed, method, path, headers=header)
            assert answer.status_code not in (401, 403), (path, answer.text)
            assert answer.status_code < 500


async def test_what_is_open_is_open_and_what_is_local_is_local(
    closed: httpx.AsyncClient, local_app: headrace.App
) -> None:
    for path in OPEN | LOCAL:
        assert (await closed.get(path)).status_code == 200
    foreign = {"X-Forwarded-For": "203.0.113.7"}
    key = await a_key(local_app, "read")
    for path in LOCAL:
        problem(await closed.get(path, headers=foreign), 401)
        assert (await closed.get(path, headers=foreign | bearer(key))).status_code == 200
    assert (await closed.get("/healthz", headers=foreign)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "203.0.113.7"},
        {"Forwarded": "for=203.0.113.7"},
        {"Host": "jobs.example.com"},
        {"Host": "rebound.example.com:3989"},
        {"Origin": "https://evil.example.com"},
        {"Origin": "null"},
    ],
)
async def test_without_keys_only_programs_of_this_machine_are_served(
    local: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await local.get("/queues")).status_code == 200
    told = problem(await local.get("/queues", headers=headers), 403, "forbidden")
    assert "headrace keys create" in told["remedy"]
    problem(await local.post("/queues/q/pause", headers=headers), 403)


async def test_without_keys_other_machines_are_refused(local_app: headrace.App) -> None:
    api = headrace.server.create(local_app)
    for address, allowed in (("127.0.0.1", True), ("::1", True), ("192.0.2.1", False)):
        transport = httpx.ASGITransport(api, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.get("/queues")).status_code == (200 if allowed else 403)


async def test_a_key_for_some_queues_reaches_only_those(
    closed: httpx.AsyncClient, local_app: headrace.App
) -> None:
    app = local_app
    _, text = await create_key(app, name="scans only", scope="admin", queues=["scans"])
    own = await app.enqueue("add", {"a": 1, "b": 1}, queue="scans")
    foreign = await app.enqueue("add", {"a": 1, "b": 1}, key="k")
    headers = bearer(text)

    async def get(path: str) -> httpx.Response:
        return await closed.get(path, headers=headers)

    async def post(path: str, body: Any = None) -> httpx.Response:
        return await closed.post(path, json=body, headers=headers)

    assert [job["job_id"] for job in (await get("/jobs")).json()["jobs"]] == [own.id]
    problem(await get("/jobs?queue=default"), 403)
    for path in ("", "/result", "/why", "/entries", "/artifacts", "/events"):
        problem(await get(f"/jobs/{foreign.id}{path}"), 404, "job-not-found")
    problem(await post(f"/jobs/{foreign.id}/cancel"), 404)
    # A task of another queue does not exist for it, whatever queue the job would be in.
    add = {"task": "add", "args": {"a": 1, "b": 1}}
    for queue in (None, "default", "scans"):
        problem(await post("/jobs", add | {"queue": queue}), 422, "unknown-task")
        problem(await post("/jobs/batch", {"jobs": [add | {"queue": queue}]}), 422)
    scan = {"task": "scan", "args": {"platform": "x", "document": {"title": "t"}}}
    problem(await post("/jobs", scan | {"queue": "default"}), 403)
    everything = {"action": "cancel", "filter": {"status": ["pending"]}}
    assert (await post("/jobs/bulk", everything)).json()["ids"] == [own.id]
    assert (await app.get(foreign.id)).status == "pending"
    assert [queue["name"] for queue in (await get("/queues")).json()["queues"]] == ["scans"]
    problem(await post("/queues/default/pause"), 403)
    assert (await post("/queues/scans/pause")).status_code == 200
    assert (await get("/api/v2/jobs/running")).json()["data"]["queued"] == {"scans": 0}
    for path in ("/keys", "/audit", "/metrics"):
        problem(await get(path), 403, "forbidden")
    problem(await post("/keys", {"name": "wider", "scope": "admin"}), 403)


async def test_a_key_with_a_user_acts_for_that_user(
    closed: httpx.AsyncClient, local_app: headrace.App
) -> None:
    _, text = await create_key(local_app, name="ada", scope="write", user="ada")
    headers = bearer(text)

    async def speak(**args: str) -> httpx.Response:
        body = {"task": "speak", "args": args, "meta": {"user": "eve", "trace": 1}}
        return await closed.post("/jobs", json=body, headers=headers)

    job = (await speak(text="hello")).json()
    assert (job["args"]["user_id"], job["lane"]) == ("ada", "user:ada")
    assert job["meta"] == {"user": "ada", "trace": 1, "key_id": text.split("_")[1]}
    assert (await speak(user_id="ada")).status_code == 202
    told = problem(await speak(user_id="eve"), 403, "forbidden")
    assert told["field"] == "args.user_id"


async def test_a_key_may_ask_only_so_often(local_app: headrace.App) -> None:
    _, slow = await create_key(local_app, name="slow", scope="read", rate=5)
    _, other = await create_key(local_app, name="other", scope="read")
    async with client_of(local_app) as client:
        answers = [await client.get("/queues", headers=bearer(slow)) for _ in range(30)]
        codes = [answer.status_code for answer in answers]
        assert codes[:10] == [200] * 10
        assert 429 in codes
        refused = next(answer for answer in answers if answer.status_code == 429)
        problem(refused, 429, "too-many-requests")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await client.get("/queues", headers=bearer(other))).status_code == 200


async def test_nothing_is_offered_to_foreign_pages(local: httpx.AsyncClient) -> None:
    headers = {"Origin": "https://evil.example.com", "Access-Control-Request-Method": "POST"}
    answers = [
        await local.options("/jobs", headers=headers),
        await local.get("/healthz"),
        await local.get("/nope"),
        await local.get("/jobs"),
        await local.post("/jobs", content=b"{"),
    ]
    assert answers[0].status_code == 405
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("secrets", "text"),
    [
        (["pass-word", "pass-word-and-more"], "tried pass-word-and-more"),
        (["-----BEGIN\nkey-of-mine\n"], "bad key '-----BEGIN\\nkey-of-mine\\n'"),
        (['a"quote'], 'sent {"x": "a\\"quote"}'),
        (["schlüssel"], repr("schlüssel".encode())),
        (["schlüssel"], ascii("schlüssel")),
        (["it's quote"], """cannot use 'it\\'s quote" or 'it\\'s quote'"""),
        (["both \"'quote"], repr(repr("both \"'quote"))),
        (
            ["pass/word more"],
            "?x=pass%2Fword%20more, pass%2fword+more, pass/word%20more",
        ),
        (["a<quote>"], "&lt;p&gt;a&lt;quote&gt;"),
        (["mine:secret"], f"Basic {base64.b64encode(b'ada:mine:secret').decode()}"),
        (["mine:secret"], f"Basic {base64.urlsafe_b64encode(b'x:mine:secret!').decode()}"),
        (["mine:secret"], base64.b64encode(b"mine:secret").decode().rstrip("=")),
        (["schlüssel"], 'sent {"x": "schl\\u00fcssel"}'),
    ],
)
def test_hidden_values_are_hidden_however_they_are_written(secrets: list[str], text: str) -> None:
    shown = Redactor().text(text, json.dumps({"password": secrets}).encode())
    assert "[redacted]" in shown
    parts = ("more", "mine", "quote", "ssel", "bWluZT", "pbmU6c2", "aW5lOn", "Om1pbm")
    assert not [word for word in parts if word in shown]
