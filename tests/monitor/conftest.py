"""The engines of the conformance suite, and an App on each of them with a clock of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import headrace
from headrace.clock import Clock
from tests.engine.conftest import (
    clock,
    engine,
    engine_url,
    open_another,
    pytest_generate_tests,
    stores,
)

__all__ = ["clock", "engine", "engine_url", "open_another", "pytest_generate_tests", "stores"]


@pytest.fixture
async def app(engine_url: str, clock: Clock, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on each engine, with the tasks that tests need."""
    async with headrace.App(engine_url, clock=clock, artifacts=str(tmp_path / "files")) as app:

        @app.task(retries=0)
        async def broken(message: str = "it broke") -> None:
            raise ValueError(message)

        yield app
