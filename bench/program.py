"""What every contender's program does, whichever library is behind it. Standard library only.

A contender subclasses `Program` and answers six questions; this file turns it into a command that
the driver runs in the contender's own environment: `setup`, `enqueue-one`, `enqueue-hundred`,
`enqueue-many`, `latency`, `worker`. Results are one JSON object on standard output.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.recorder import Recorder

CALLERS = 100


def recorder() -> Recorder:
    """The recorder of this run, for handlers."""
    return Recorder(os.environ["BENCH_RECORD"])


class Program:
    """An asyncio contender; others override `run`."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self) -> None:
        """Connect what enqueues."""

    async def close(self) -> None:
        """Disconnect it."""

    async def setup(self) -> None:
        """Make tables, groups and the like."""

    async def enqueue(self, number: int) -> None:
        """Enqueue one job."""
        raise NotImplementedError

    async def enqueue_many(self, numbers: range) -> None:
        """Enqueue a lot of jobs by the fastest way that the library documents."""
        for number in numbers:
            await self.enqueue(number)

    def worker(self) -> None:
        """Work until told to stop."""
        raise NotImplementedError

    # -- the commands --------------------------------------------------------------------------

    async def _timed(self, work: Callable[[], Awaitable[Any]], count: int) -> dict[str, float]:
        await self.open()
        # The first call opens connections and loads scripts; it is not what is measured.
        await self.warm_up()
        begin = time.perf_counter()
        await work()
        seconds = time.perf_counter() - begin
        await self.close()
        return {"rate": count / seconds}

    async def warm_up(self) -> None:
        """Something before the clock starts; nothing by default."""

    async def _one(self, count: int) -> None:
        for number in range(count):
            await self.enqueue(number)

    async def _hundred(self, count: int) -> None:
        numbers = iter(range(count))

        async def caller() -> None:
            for number in numbers:
                await self.enqueue(number)

        await asyncio.gather(*(caller() for _ in range(CALLERS)))

    async def _latency(self, count: int) -> dict[str, float]:
        await self.open()
        record = recorder()
        for number in range(count):
            await asyncio.sleep(0.02)  # the worker is idle again
            record.hand_in(number)
            await self.enqueue(number)
            limit = time.monotonic() + 10
            while not record.started(number):
                if time.monotonic() > limit:
                    raise TimeoutError(f"job {number} did not start")
                await asyncio.sleep(0.0005)
        await self.close()
        return {"count": count}

    def run(self, command: str, count: int) -> dict[str, float] | None:
        match command:
            case "setup":
                asyncio.run(self.setup())
            case "enqueue-one":
                return asyncio.run(self._timed(lambda: self._one(count), count))
            case "enqueue-hundred":
                return asyncio.run(self._timed(lambda: self._hundred(count), count))
            case "enqueue-many":
                return asyncio.run(self._timed(lambda: self.enqueue_many(range(count)), count))
            case "latency":
                return asyncio.run(self._latency(count))
            case "worker":
                self.worker()
        return None


class BlockingProgram(Program):
    """A contender without asyncio: a hundred callers are a hundred threads."""

    def send(self, number: int) -> None:
        """Enqueue one job."""
        raise NotImplementedError

    def send_many(self, numbers: range) -> None:
        """Enqueue a lot of jobs by the fastest way that the library documents."""
        for number in numbers:
            self.send(number)

    async def enqueue(self, number: int) -> None:
        self.send(number)

    async def enqueue_many(self, numbers: range) -> None:
        self.send_many(numbers)

    async def _hundred(self, count: int) -> None:
        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(self.send, range(count)))


def main(make: Callable[[str], Program]) -> None:
    """Run one command of a contender."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--count", type=int, default=0)
    options = parser.parse_args()
    answer = make(os.environ["BENCH_URL"]).run(options.command, options.count)
    print(json.dumps(answer or {}), flush=True)
