"""What runs on the hosts: `produce` enqueues and writes down what was acknowledged, `work` runs
jobs and writes down which.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Coroutine
from typing import Any

import headrace
from headrace.errors import EngineUnavailable

CALLERS = 50
app = headrace.App(os.environ["HEADRACE_URL"])
journal = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def note(number: int) -> None:
    """One line, with the time."""
    os.write(journal, f"{number} {time.time():.4f}\n".encode())


@app.task
async def touch(number: int) -> None:
    note(number)


async def produce(count: int) -> None:
    """Enqueue so many jobs, from several callers at once; repeat what is not acknowledged."""
    numbers = iter(range(count))

    async def caller() -> None:
        for number in numbers:
            # The same id each time, so that a job whose acknowledgement was lost is not made twice.
            job = touch.job(number)
            while True:
                try:
                    await app.enqueue(job)
                except EngineUnavailable:
                    await asyncio.sleep(0.1)
                else:
                    note(number)
                    break

    async with app:
        await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def work() -> None:
    """Run jobs until stopped."""
    async with app, headrace.JobOrchestrator(app, max_workers=20):
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    does: Coroutine[Any, Any, None]
    does = produce(int(sys.argv[2])) if sys.argv[1] == "produce" else work()
    asyncio.run(does)


if __name__ == "__main__":
    main()
