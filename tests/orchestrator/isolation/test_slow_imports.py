"""How long a child takes to start is no matter of the handler's timeout."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import App, JobFailed, Status
from headrace.orchestrator.isolation import pool as pool_module
from headrace.testing import override
from tests.orchestrator.conftest import Worker
from tests.orchestrator.isolation import slow_module
from tests.orchestrator.isolation.conftest import pids_in


@pytest.fixture
async def shop() -> AsyncIterator[App]:
    async with override(slow_module.app) as app:
        yield app


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module is imported when this file is there."""
    monkeypatch.setenv("HEADRACE_TEST_GATE", str(tmp_path / "gate"))
    return tmp_path / "gate"


async def test_an_import_slower_than_the_timeout_costs_no_attempt(
    shop: App, worker: Worker, gate: Path
) -> None:
    job, other = await slow_module.hello.enqueue(), await slow_module.dawdle.enqueue()
    async with worker(shop, max_workers=2), asyncio.timeout(60):
        await pids_in(gate.with_name("loading"))
        shop.clock.advance(10)
        with pytest.raises(JobFailed, match="did not finish within 5 s"):
            await shop.result(other.id)
        assert (await shop.get(job.id)).status is Status.RUNNING, "its time has not begun"
        await asyncio.to_thread(gate.touch)
        assert await shop.result(job.id) == "hello"


async def test_an_import_that_never_ends_is_reported_as_that(
    shop: App,
    worker: Worker,
    gate: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(pool_module, "START_SECONDS", 0.5)
    monkeypatch.setattr(pool_module, "SLOW_SECONDS", 0.1)
    caplog.set_level(logging.WARNING)
    job = await slow_module.hello.options(timeout=0.5).enqueue()
    async with asyncio.timeout(60):
        await worker(shop).run_until_idle()
    over = await shop.get(job.id)
    assert (over.status, over.error_type) == (Status.FAILED, "ChildNotStarted")
    assert 'task "hello" was not ready within 0.5 s' in (over.error or "")
    assert "slow_module" in (over.error or "")
    assert "is still importing" in caplog.text
