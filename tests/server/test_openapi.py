"""The OpenAPI document says what the server does: Schemathesis holds one against the other."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pydantic
import pytest
from fastapi import FastAPI

import headrace
import headrace.server
from headrace.server import app as factory
from tests.server.conftest import a_key, client_of
from tests.server.test_guard import ROUTES

ROOT = Path(__file__).parents[2]
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
EXAMPLES = 3
# A busy machine needs minutes.
LIMIT = 400


class Model(pydantic.BaseModel):
    """What a task may be given."""

    x: int


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    app = headrace.App("sqlite:///:memory:")

    @app.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    made = headrace.server.create(app).openapi()
    return dict(json.loads(json.dumps(made)))


@pytest.mark.timeout(LIMIT + 20)
async def test_schemathesis_finds_nothing(
    local_app: headrace.App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await a_key(local_app, rate=100_000)
    told: Counter[tuple[str, str, int]] = Counter()
    monkeypatch.setattr(factory, "create", partial(_counted, factory.create, told))
    # Waiting for results takes as long as it is told to.
    (tmp_path / "schemathesis.toml").write_text(
        '[[operations]]\ninclude-path = "/jobs/{job_id}/result"\n'
        'parameters = { "query.timeout" = 0.01 }\n'
    )
    async with client_of(local_app) as client:
        process = await asyncio.create_subprocess_exec(
            str(SCHEMATHESIS),
            *("run", f"{client.base_url}/openapi.json"),
            # Both: it would invent the other one, which is looked at first.
            *("--header", f"Authorization: Bearer {key}", "--header", f"X-API-Key: {key}"),
            *("--checks", "all", "--max-examples", str(EXAMPLES), "--seed", "1"),
            # Streams that never end are held to their promises in test_events.py.
            *("--exclude-path-regex", "events$", "--request-timeout", "20", "--no-color"),
            *("--generation-database", "none", "--continue-on-failure"),
            cwd=tmp_path,
            env=os.environ
            | {"SCHEMATHESIS_HOOKS": "tests.server.schemathesis_hooks", "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(process.communicate(), LIMIT)
    said = output.decode("utf-8", "replace")
    assert process.returncode == 0, said[-40_000:]
    # All of them but the document itself.
    assert f"{len(ROUTES) - 1} total" in said
    _check_answers(told)


def _counted(
    create: Callable[..., FastAPI], told: Counter[tuple[str, str, int]], *given: Any, **options: Any
) -> FastAPI:
    """The application, whose answers are counted by method, route and status."""
    api = create(*given, **options)

    class Counting:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def send_counted(message: Any) -> None:
                if message["type"] == "http.response.start":
                    route = getattr(scope.get("route"), "path_format", "")
                    told[scope["method"], route, message["status"]] += 1
                await send(message)

            await self.app(scope, receive, send_counted)

    api.add_middleware(Counting)
    return api


def _check_answers(told: Counter[tuple[str, str, int]]) -> None:
    """Nearly all that was asked got past the guard: on every route, and most of it well."""
    statuses: Counter[int] = Counter()
    past: set[tuple[str, str]] = set()
    for (method, route, status), count in told.items():
        statuses[status] += count
        if status not in (401, 403):
            past.add((method, route))
    asked = {(method, path) for method, path, _ in ROUTES if not path.endswith("events")}
    assert asked <= past, asked - past
    # What is left is one of its checks, which leaves the key out on purpose.
    assert statuses[401] < statuses.total() / 5, statuses
    assert sum(count for status, count in statuses.items() if status < 300) > 100, statuses


def test_every_route_is_documented(document: dict[str, Any]) -> None:
    for method, path, access in ROUTES:
        operation = document["paths"][path][method.lower()]
        assert operation["summary"]
        assert len(operation["tags"]) == 1
        assert operation["description"]
        assert operation["x-access"] == access
        assert operation["responses"]["default"]["content"].keys() == {"application/problem+json"}
        assert "422" not in operation["responses"]
    for name in _references(document):
        assert name in document["components"]["schemas"]


def _references(part: Any) -> set[str]:
    match part:
        case {"$ref": str(reference)}:
            return {reference.rpartition("/")[2]}
        case dict():
            return set().union(*(_references(each) for each in part.values()))
        case list():
            return set().union(*(_references(each) for each in part))
        case _:
            return set()


def test_arguments_of_tasks_are_documented(document: dict[str, Any]) -> None:
    body = document["components"]["schemas"]["JobRequest"]
    assert body["properties"]["task"] == {"const": "add"}
    assert body["properties"]["args"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }


async def test_a_task_with_any_kind_of_argument_is_documented(tmp_path: Path) -> None:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task
    async def odd(model: Model, anything: Any, untyped, choice: str | None = None) -> None:  # type: ignore[no-untyped-def]
        """Takes anything."""

    async with app, client_of(app) as client:
        [task] = (await client.get("/tasks")).json()["tasks"]
        assert task["arguments"]["properties"]["model"]["properties"]["x"] == {
            "title": "X",
            "type": "integer",
        }
        assert task["arguments"]["required"] == ["model", "anything", "untyped"]
        assert (await client.get("/openapi.json")).status_code == 200
        args = {"model": {"x": 1.0}, "anything": {"y": 1.5}, "untyped": None}
        stored = await client.post("/jobs", json={"task": "odd", "args": args})
        assert stored.status_code == 202


async def test_the_page_for_people_loads_its_own_files_only(
    local: httpx.AsyncClient, local_app: headrace.App
) -> None:
    await a_key(local_app)
    page = await local.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert "://" not in page.text
    files = re.findall(r'(?:src|href)="(docs/[^"]+)"', page.text)
    assert len(files) == 4
    for name in files:
        file = await local.get(f"/{name}")
        assert file.status_code == 200
        assert file.headers["x-content-type-options"] == "nosniff"
        assert "max-age" in file.headers["cache-control"]
    assert (await local.get("/docs/")).headers["location"] == "/docs"
    for odd in ("docs/redoc.standalone.js", "docs/..%2Fpage.py", "docs/page.py"):
        assert (await local.get(f"/{odd}")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/jobs/batch", "POST"),
        ("GET", "/jobs/bulk", "POST"),
        ("GET", "/dead-letters/kafka:a:0:1/replay", "POST"),
        ("DELETE", "/dead-letters/kafka:a:0:1/replay", "POST"),
    ],
)
async def test_another_method_is_refused_as_such(
    local: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await local.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


async def test_requests_are_taken_as_the_document_says(local: httpx.AsyncClient) -> None:
    job = {"task": "speak", "args": {"user_id": "a"}}
    document = (await local.get("/openapi.json")).json()
    [when, _] = document["components"]["schemas"]["CopyRequest"]["properties"]["run_at"]["anyOf"]
    for moment, taken in (
        ("0024-04-11T09:56:51.08-04:58", False),
        ("1971-01-01T00:00:00Z", True),
        ("9997-01-01T00:00:00Z", True),
        ("9999-04-11T09:56:51Z", False),
    ):
        answer = await local.post("/jobs", json=job | {"run_at": moment})
        assert answer.status_code == (202 if taken else 422)
        assert bool(re.match(when["pattern"], moment)) is taken
    # What a task takes does not depend on the lane that a request has chosen.
    odd = {"task": "speak", "args": {"user_id": "a\x0fb"}, "lane": "x"}
    assert (await local.post("/jobs", json=odd)).json()["field"] == "args.user_id"
    form = {"task": "ingest", "retries": "null"}
    file = {"file": ("a.txt", b"abc")}
    assert (await local.post("/jobs", data=form, files=file)).json()["field"] == "retries"
    form = {"task": "ingest", "timeout": "null"}
    assert (await local.post("/jobs", data=form, files=file)).json()["timeout"] is None
    whole = {"kind": "webhook", "options": {"url": "https://example.com/"}, "retries": 3.0}
    made = await local.put("/destinations/hook", json=whole)
    assert made.json()["retries"] == 3, made.text
