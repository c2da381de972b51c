"""A program whose handler tells when it was started, and fails until a file is there."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import headrace

PAUSE = 1.5
FOLDER = "BREAKER_FOLDER"

app = headrace.App()
breaker = headrace.Breaker(failures=3, within=60, pause=PAUSE)


@app.task(retries=0, breaker=breaker)
async def call(number: int = 0) -> None:
    folder = Path(os.environ[FOLDER])
    with (folder / "starts").open("a") as file:
        file.write(f"{time.time()} {os.getpid()}\n")
    while (folder / "slow").exists():  # noqa: ASYNC110 - other processes change it
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.02)
    if not (folder / "works").exists():
        raise ConnectionError("the service is away")
