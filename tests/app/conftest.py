"""An App with a few tasks on each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import headrace
from tests.conftest import ENGINES, Servers, store_url


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> str:
    return store_url(request.param, servers, tmp_path)


def make_app(url: str) -> headrace.App:
    app = headrace.App(url)

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(retries=0)
    async def broken() -> None:
        raise ValueError("it broke")

    return app


@pytest.fixture
async def app(url: str) -> AsyncIterator[headrace.App]:
    async with make_app(url) as app:
        yield app
