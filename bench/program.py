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
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.recorder import Recorder

CALLERS = 100
# Slow contenders enqueue for so long and no longer: rates are compared, not times.
SECONDS = 3.0
# The first jobs wake everything up; they are not counted.
WARM_UP = 5


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

    async def _timed(self, work: Callable[[int], Awaitable[int]], count: int) -> dict[str, float]:
        await self.open()
        # The first calls open connections and load scripts; that is not what is measured.
        for number in range(WARM_UP):
            await self.enqueue(number)
        begin = time.perf_counter()
        done = await work(count)
        seconds = time.perf_counter() - begin
        await self.close()
        return {"rate": done / seconds}

    async def _one(self, count: int) -> int:
        done = 0
        for number in within_seconds(count):
            await self.enqueue(number)
            done += 1
        return done

    async def _hundred(self, count: int) -> int:
        numbers = within_seconds(count)
        done = 0

        async def caller() -> None:
            nonlocal done
            for number in numbers:
                await self.enqueue(number)
                done += 1

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        return done

    async def _many(self, count: int) -> dict[str, float]:
        await self.open()
        begin = time.perf_counter()
        await self.enqueue_many(range(count))
        seconds = time.perf_counter() - begin
        await self.close()
        return {"rate": count / seconds}

    async def _latency(self, count: int) -> dict[str, float]:
        await self.open()
        record = recorder()
        for number in range(count):
            await asyncio.sleep(0.02)  # the worker is idle again
            record.hand_in(number)
            await self.enqueue(number)
            limit = time.monotonic() + 30
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
                return asyncio.run(self._timed(self._one, count))
            case "enqueue-hundred":
                return asyncio.run(self._timed(self._hundred, count))
            case "enqueue-many":
                return asyncio.run(self._many(count))
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

    async def _hundred(self, count: int) -> int:
        numbers = within_seconds(count)
        turn = threading.Lock()

        def caller(_: int) -> int:
            done = 0
            while True:
                with turn:
                    number = next(numbers, None)
                if number is None:
                    return done
                self.send(number)
                done += 1

        with ThreadPoolExecutor(CALLERS) as threads:
            return sum(threads.map(caller, range(CALLERS)))


def within_seconds(count: int) -> Iterator[int]:
    """Numbers up to `count`, as long as there is time."""
    end = time.perf_counter() + SECONDS
    for number in range(count):
        if time.perf_counter() > end:
            return
        yield number


def main(make: Callable[[str], Program]) -> None:
    """Run one command of a contender."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--count", type=int, default=0)
    options = parser.parse_args()
    answer = make(os.environ["BENCH_URL"]).run(options.command, options.count)
    print(json.dumps(answer or {}), flush=True)
