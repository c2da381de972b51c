"""A real server on a free port of this machine, over a store on each engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import headrace
from headrace.admin.keys import create_key
from headrace.server.listen import listening
from tests.support.processes import Process, until

# Many programs may start at the same time, on a busy machine.
START_LIMIT = 90.0

Serve = Callable[..., Awaitable[httpx.AsyncClient]]


class Document(msgspec.Struct):
    """What a task may be given."""

    title: str
    pages: int = 1


def make_app(url: str, folder: Path, **settings: Any) -> headrace.App:
    """An App with a task of every kind."""
    app = headrace.App(url, artifacts=str(folder / "artifacts"), **settings)

    @app.task
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.task(retries=0)
    async def broken(password: str = "") -> None:
        raise ValueError(f"cannot log in with {password}" if password else "it broke")

    @app.task(queue="scans", lane="platform:{platform}")
    async def scan(ctx: headrace.Context, platform: str, document: Document) -> str:
        await ctx.artifacts.put("page.html", b"<p>hello", layer="bronze", media_type="text/html")
        return await ctx.stage("reading", str, document.title)

    @app.task(lane=headrace.Lane("user:{user_id}", width=3))
    async def speak(user_id: str, text: str = "") -> str:
        return f"{user_id}: {text}"

    @app.task
    async def slow(ctx: headrace.Context) -> None:
        for step in range(1_000):
            ctx.progress(step / 10)
            await asyncio.sleep(0.02)

    @app.task
    async def ingest(ctx: headrace.Context, file: str, language: str = "en") -> int:
        return len((folder / "artifacts" / file).read_bytes())

    sums = app.workflow("sums", params={"a": int, "b": 2})
    first = sums.step("first", add, {"a": sums.params.a, "b": sums.params.b})
    second = sums.step("second", add, {"a": first.output, "b": sums.item}, each=[1, 2, 3])
    sums.step("end", "add", {"a": second.output[2], "b": 0}, when=f"{first.output} != 0")
    return app


@pytest.fixture
async def app(url: str, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on each engine."""
    async with make_app(url, tmp_path) as app:
        yield app


@pytest.fixture
async def local_app(tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on SQLite, for what does not depend on the engine."""
    async with make_app(f"sqlite:///{tmp_path}/jobs.db", tmp_path) as app:
        yield app


@asynccontextmanager
async def client_of(
    app: headrace.App, key: str | None = None, **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who talks to a server over this App."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        listening(app, host="127.0.0.1", port=0, **options) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=30) as client,
    ):
        yield client


@pytest.fixture
async def client(app: headrace.App) -> AsyncIterator[httpx.AsyncClient]:
    """A server without keys on each engine."""
    async with client_of(app) as client:
        yield client


@pytest.fixture
async def local(local_app: headrace.App) -> AsyncIterator[httpx.AsyncClient]:
    """A server without keys on SQLite."""
    async with client_of(local_app) as client:
        yield client


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """What a test opens and the fixture closes."""
    async with AsyncExitStack() as stack:
        yield stack


async def a_key(app: headrace.App, scope: str = "admin", **fields: Any) -> str:
    """A new key."""
    _, secret = await create_key(app, name=f"test {scope}", scope=scope, **fields)
    return secret


def bearer(key: str) -> dict[str, str]:
    """The header that presents a key."""
    return {"Authorization": f"Bearer {key}"}


async def run_jobs(app: headrace.App) -> None:
    """Run everything that may run now."""
    await headrace.JobOrchestrator(app).run_until_idle()


async def address_of(server: Process) -> str:
    """Where a server program listens, as soon as it does."""

    def told() -> str | None:
        # Among lines of its log, perhaps.
        lines = [line for line in server.said.splitlines() if '"serving"' in line]
        assert lines or server.code is None, server.said
        return json.loads(lines[0])["url"] if lines else None

    return await until(told, "the start of the server", START_LIMIT) or ""


def problem(response: httpx.Response, status: int, word: str | None = None) -> dict[str, Any]:
    """The problem that must have been answered."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    if word is not None:
        assert document["type"] == f"urn:headrace:problem:{word}"
    return document
