"""What processes say about themselves, at moments at which real ones are hard to be caught."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import headrace
from headrace.cli.services.server import Serving, until_signal
from headrace.dispatchers.cron.dispatcher import CronDispatcher
from headrace.errors import EngineUnavailable
from headrace.loops.loop import UNHEALTHY_AFTER
from headrace.probes import store
from headrace.probes.dispatcher import DispatcherProbe
from headrace.probes.probe import STARTING, STOPPING
from headrace.probes.store import StoreProbe
from tests.support.servers import RedisServer, redis_binaries


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[headrace.App]:
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", port=0) as made:
        yield made


async def test_a_dispatcher_is_ready_between_its_first_report_and_its_stop(
    app: headrace.App,
) -> None:
    dispatcher = CronDispatcher(app)
    probe = DispatcherProbe(dispatcher.heartbeat, [dispatcher])
    assert await probe.trouble() == STARTING
    await dispatcher.heartbeat.tick()
    assert await probe.trouble() is None
    dispatcher.start()
    await dispatcher.stop()
    assert await probe.trouble() == STOPPING


async def test_a_dispatcher_is_not_ready_after_three_errors_in_a_row(app: headrace.App) -> None:
    dispatcher = CronDispatcher(app)
    probe = DispatcherProbe(dispatcher.heartbeat, [dispatcher])
    await dispatcher.heartbeat.tick()
    dispatcher.heartbeat.misses = UNHEALTHY_AFTER - 1
    assert await probe.trouble() is None, "one may be chance"
    dispatcher.heartbeat.misses = UNHEALTHY_AFTER
    assert "the engine failed 3 times in a row" in str(await probe.trouble())
    dispatcher.heartbeat.misses = 0
    dispatcher.failures, dispatcher.last_error = 2, EngineUnavailable("10.1.2.3:5432 refused")
    assert await probe.trouble() is None
    dispatcher.failures = UNHEALTHY_AFTER
    trouble = str(await probe.trouble())
    assert "the engine failed 3 times in a row (EngineUnavailable)" in trouble
    assert "10.1.2.3" not in trouble


async def test_a_process_that_stops_while_the_engine_is_asked_is_not_ready(
    app: headrace.App,
) -> None:
    said = [None, STOPPING]
    probe = StoreProbe(app, lambda: said.pop(0))
    assert await probe.trouble() == STOPPING


async def test_a_server_is_not_ready_before_it_serves_and_after_the_first_signal(
    app: headrace.App,
) -> None:
    serving = Serving()
    assert serving.trouble == "it starts"
    seen = []

    def started(url: str) -> None:
        serving.trouble = None
        seen.append(url)
        os.kill(os.getpid(), signal.SIGTERM)

    async with asyncio.timeout(60):
        await until_signal(app, serving, on_start=started)
    assert seen
    assert serving.trouble == STOPPING


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A server of this test's own, to be frozen."""
    made = RedisServer(redis_binaries()["redis"], name="probe")
    made.start()
    yield made
    made.destroy()


async def test_an_engine_that_hangs_is_told_in_time(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the connection of whoever asks is closed."""
    monkeypatch.setattr(store, "ENGINE_SECONDS", 0.2)
    async with headrace.App(redis_server.url) as app:
        probe = StoreProbe(app, lambda: None)
        assert await probe.trouble() is None
        probe._snapshots.forget()
        assert redis_server.process is not None
        redis_server.process.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(60):
                trouble = await probe.trouble()
        finally:
            redis_server.process.send_signal(signal.SIGCONT)
        assert trouble == "the engine has not answered within 0.2 s"


def test_a_worker_needs_no_web_framework_for_its_probes() -> None:
    program = (
        "import sys, headrace.cli.services.worker, headrace.probes.worker, "
        "headrace.probes.dispatcher, headrace.probes.listen\n"
        "print({name.partition('.')[0] for name in sys.modules} "
        "& {'starlette', 'fastapi', 'uvicorn', 'prometheus_client'} or 'none')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout.strip() == "none"
