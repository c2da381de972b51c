"""What workers and producers of both installations run: only what is public in each of them."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import headrace
from tests.crash import journal, tasks
from tests.crash.journal import Line

PAUSE_SECONDS = 0.1

app = tasks.register(headrace.App())


async def produce() -> None:
    """Enqueue until asked to stop, and write down each job that the store has acknowledged."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with app:
        number = 0
        while not stopped.is_set():
            number += 1
            lane = f"lane{number % 3}"
            made = await app.enqueue_many(
                [
                    app.tasks["work"].job(seconds=0.02),
                    app.tasks["in_lane"].job(lane=lane, seconds=0.01),
                    app.tasks["staged"].job(),
                ]
            )
            made.append(await app.tasks["work"].enqueue())
            for job in made:
                journal.write(Line(event="acknowledged", job=job.id))
            # So that workers keep up.
            await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    # A program of the other installation would prove nothing.
    print(Path(headrace.__file__).parent, flush=True)
    asyncio.run(produce())
