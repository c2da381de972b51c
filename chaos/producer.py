"""A program that enqueues: `python -m chaos.producer NAME SEED RATE`, until SIGTERM.

It writes a job down as acknowledged when it has been told so, and not before. Where it was not
told, it asks again with the same key, as a careful caller does, so that each request makes one
job. Each of its lanes is fed by one line of requests, one after the other: the order in which they
were acknowledged is the order in which they have to run.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys

import headrace
from chaos import tasks
from chaos.journal import Journal, Line, from_environment

LANES = 4
# Of so many plain requests, how many are of each task.
SHARES = {
    "plain": 60,
    "threaded": 12,
    "staged": 10,
    "shaky": 8,
    "napping": 5,
    "isolated": 5,
}
LONG = 0.02
"""How many handlers take longer than a lease."""

PATIENCE = 0.2


class Producer:
    """Sends requests until it is told to stop."""

    def __init__(self, app: headrace.App, journal: Journal, name: str, seed: int) -> None:
        self.app = app
        self.journal = journal
        self.name = name
        self.seed = seed
        self.stopping = asyncio.Event()
        self._numbers = iter(range(1, 1 << 60))

    async def run(self, rate: float) -> None:
        """So many requests a second, a third of them in lanes."""
        pause = 3 / rate
        async with asyncio.TaskGroup() as group:
            for line in range(2):
                group.create_task(self._plain(random.Random(f"{self.seed} {line}"), pause))
            for lane in range(LANES):
                group.create_task(self._lane(f"{self.name}-{lane}", pause * LANES))

    async def _plain(self, chance: random.Random, pause: float) -> None:
        names, shares = list(SHARES), list(SHARES.values())
        while not self.stopping.is_set():
            [task] = chance.choices(names, shares)
            await self.request(task, seconds=seconds(chance))
            await self._pause(chance.uniform(0, 2 * pause))

    async def _lane(self, lane: str, pause: float) -> None:
        chance = random.Random(f"{self.seed} {lane}")
        while not self.stopping.is_set():
            await self.request("laned", lane=lane, seconds=chance.uniform(0.0, 0.2))
            await self._pause(chance.uniform(0, 2 * pause))

    async def request(self, task: str, lane: str = "", **args: object) -> None:
        """Enqueue one job, however often it takes."""
        number = next(self._numbers)
        options = self.app.tasks[task].options(key=f"{self.name} {number}")
        place = {"lane": lane} if lane else {}
        job = options.job(number=number, **args, **place)
        while True:
            try:
                stored = await self.app.enqueue_job(job)
            except headrace.EngineError:
                # Not told: it may be stored, or not. Asking again is safe.
                if self.stopping.is_set():
                    return
                await self._pause(PATIENCE)
            else:
                break
        self.journal.write(
            Line(event="acknowledged", job=stored.id, task=task, lane=lane, number=number)
        )

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)


def seconds(chance: random.Random) -> float:
    """How long a handler takes."""
    return chance.uniform(2.0, 5.0) if chance.random() < LONG else chance.expovariate(30)


async def main(name: str, seed: int, rate: float) -> None:
    journal = from_environment()
    app = tasks.register(headrace.App(), journal)
    producer = Producer(app, journal, name, seed)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, producer.stopping.set)
    await producer.run(rate)
    with contextlib.suppress(headrace.HeadraceError):
        await app.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
