"""The OpenAPI document says what the server does: Schemathesis holds one against the other."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pydantic
import pytest

import headrace
import headrace.server
from tests.server.conftest import a_key, client_of
from tests.server.test_guard import ROUTES

ROOT = Path(__file__).parents[2]
SCHEMATHESIS = Path(sys.executable).parent / "schemathesis"
EXAMPLES = 3
LIMIT = 100


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


async def test_schemathesis_finds_nothing(local_app: headrace.App, tmp_path: Path) -> None:
    key = await a_key(local_app, rate=100_000)
    # Waiting for results takes as long as it is told to.
    (tmp_path / "schemathesis.toml").write_text(
        '[[operations]]\ninclude-path = "/jobs/{job_id}/result"\n'
        'parameters = { "query.timeout" = 0.01 }\n'
    )
    async with client_of(local_app) as client:
        process = await asyncio.create_subprocess_exec(
            str(SCHEMATHESIS),
            *("run", f"{client.base_url}/openapi.json"),
            *("--header", f"Authorization: Bearer {key}"),
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
    told = output.decode("utf-8", "replace")
    assert process.returncode == 0, told[-8_000:]
    # All of them but the document itself.
    assert f"{len(ROUTES) - 1} total" in told


def test_every_route_is_documented(document: dict[str, Any]) -> None:
    for method, path, access in ROUTES:
        operation = document["paths"][path][method.lower()]
        assert operation["summary"]
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
    [body] = document["components"]["schemas"]["JobRequest"]["oneOf"]
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


async def test_the_page_for_people_loads_nothing(local: httpx.AsyncClient) -> None:
    page = await local.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.text
    assert "http" not in page.text.replace("http-equiv", "")
    for _, path, _ in ROUTES:
        assert path in page.text
