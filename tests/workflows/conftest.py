"""Tasks for workflows, and files of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import App
from headrace.task import Task
from headrace.workflows.load import load_file
from headrace.workflows.model import Workflow
from tests.conftest import ENGINES, Servers, store_url
from tests.workflows.scene import Scene

Write = Callable[[str, str], Path]


@pytest.fixture
def tasks() -> dict[str, Task[..., Any]]:
    """What the steps of these workflows may run."""
    app = App("redis://127.0.0.1:1/0")

    @app.task
    async def fetch(url: str, pages: int = 1) -> dict[str, Any]:
        return {"url": url, "pages": pages}

    @app.task
    async def parse(page: dict[str, Any]) -> list[int]:
        return []

    @app.task
    async def store(rows: list[int], table: str = "offers") -> None: ...

    @app.task
    async def nothing() -> None: ...

    return app.tasks


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file and answer its path."""

    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(write: Write, tasks: dict[str, Task[..., Any]]) -> Callable[..., Workflow]:
    """Load a workflow of these steps."""

    def load(*steps: dict[str, Any], **fields: Any) -> Workflow:
        content = {"id": "w", "steps": steps, **fields}
        return load_file(write("w.json", msgspec.json.encode(content).decode()), tasks)

    return load


@pytest.fixture(params=ENGINES)
async def scene(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> AsyncIterator[Scene]:
    """The tasks on each engine; the store has to be in order when the test is over."""
    scene = Scene(store_url(request.param, servers, tmp_path), tmp_path)
    async with scene.app:
        yield scene
        assert await scene.app.engine.audit() == []
