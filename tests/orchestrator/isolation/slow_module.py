"""A module that a child process takes long to import: as long as the test wants."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from headrace import App
from headrace.orchestrator.isolation.child import loading_guard

app = App("sqlite://")


@app.task(isolate="process", timeout=5, retries=0)
def hello() -> str:
    return "hello"


@app.task(timeout=5, retries=0)
async def dawdle() -> None:
    await asyncio.sleep(1000)


if loading_guard._loading:
    # Says that it has begun, then waits until it is let through.
    gate = Path(os.environ["HEADRACE_TEST_GATE"])
    gate.with_name("loading").write_text(f"{os.getpid()}")
    while not gate.exists():
        time.sleep(0.01)
