"""The further worker processes of `headrace up`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from headrace.cli.app_loader import load_app, reconfigure
from headrace.cli.session import TOUR
from headrace.cli.up.processes import WorkerProcesses


async def test_a_stop_that_is_cancelled_forgets_no_process(tmp_path: Path) -> None:
    app = reconfigure(load_app(TOUR), url=f"sqlite:///{tmp_path / 'headrace.db'}", app=TOUR)
    children = WorkerProcesses(app, count=2)
    children.start()
    processes = [each for each in psutil.Process().children() if "worker" in each.cmdline()]
    assert len(processes) == 2
    waiting = asyncio.ensure_future(children.stop())
    await asyncio.sleep(0)  # it has told them, and waits
    waiting.cancel()
    await asyncio.wait([waiting])
    await children.stop()
    assert not [process for process in processes if process.is_running()]
