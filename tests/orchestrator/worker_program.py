"""A worker as a program of its own, for tests of signals and exit codes.

python -m tests.orchestrator.worker_program URL FOLDER [setting=value ...]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import headrace
from headrace.orchestrator.worker_program import exit_worker, run_worker


def make_app(url: str, folder: Path, **settings: Any) -> headrace.App:
    app = headrace.App(url, **settings)

    @app.task
    async def until_told(name: str) -> str:
        """Say that it has begun, then wait for a file."""
        (folder / f"{name}.begun").touch()
        while not (folder / f"{name}.go").exists():  # noqa: ASYNC110 - told from elsewhere
            await asyncio.sleep(0.01)
        return name

    @app.task(timeout=0.2)
    async def hang(name: str) -> None:
        (folder / f"{name}.begun").touch()
        while True:
            time.sleep(0.05)  # noqa: ASYNC251 - it hangs the whole loop

    @app.task(timeout=0.2, retries=0)
    def stubborn(name: str) -> None:
        (folder / f"{name}.begun").touch()
        time.sleep(600)

    @app.task(timeout=None, retries=0)
    async def hangs_in_stages(ctx: headrace.Context, name: str) -> None:
        def hang_in_thread() -> None:
            (folder / f"{name}.begun").touch()
            time.sleep(600)

        for key in range(3):
            with contextlib.suppress(headrace.StageTimedOut):
                await ctx.stage("hang", hang_in_thread, key=key, timeout=0.05)
        await ctx.stage("hang", hang_in_thread, key="last")

    return app


async def main(app: headrace.App, folder: Path) -> tuple[headrace.JobOrchestrator, int]:
    orchestrator = headrace.JobOrchestrator(app)
    ready = asyncio.create_task(announce(orchestrator, folder))
    code = await run_worker(orchestrator)
    ready.cancel()
    await app.close()
    return orchestrator, code


async def announce(orchestrator: headrace.JobOrchestrator, folder: Path) -> None:
    while not orchestrator.running:  # noqa: ASYNC110 - `run_worker` starts it and tells nobody
        await asyncio.sleep(0.01)
    (folder / "ready").touch()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    place = Path(sys.argv[2])
    given = {name: json.loads(value) for name, value in (pair.split("=") for pair in sys.argv[3:])}
    exit_worker(*asyncio.run(main(make_app(sys.argv[1], place, **given), place)))
