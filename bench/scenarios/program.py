"""Headrace with the tasks of the scenarios: what fills the store, and what works it off.

`fill` stores jobs through `engine.insert`, 1,000 at a time, the next batch made while the engine
stores this one: the path of `app.enqueue_many` without the answers that it would collect.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import headrace
from bench.recorder import Recorder, Ticks
from headrace.model.ids import new_id
from headrace.model.job import Inserted, NewJob
from headrace.orchestrator.worker_program import run_worker

BATCH = 1_000
HOT = "hot"
# Seconds: not while anything is measured.
LATER = 1_000_000.0

app = headrace.App(
    os.environ.get("BENCH_URL"),
    app="bench.scenarios.program:app",
    max_workers=int(os.environ.get("BENCH_SLOTS", "10")),
)


@functools.cache
def _record() -> Recorder:
    return Recorder(os.environ["BENCH_RECORD"])


@functools.cache
def _ticks() -> Ticks:
    return Ticks(os.environ["BENCH_RECORD"])


@app.task
async def tick() -> None:
    """Does nothing, and is counted."""
    _ticks().start()


@app.task
async def lead(ctx: headrace.Context) -> None:
    """Is counted, and followed by one that is."""
    _ticks().start()
    ctx.then(tick.job())


@app.task
async def silent() -> None:
    """Does nothing, and is not counted."""


@app.task
async def wait(number: int, seconds: float) -> None:
    _record().start(number)
    if seconds:
        await asyncio.sleep(seconds)


@app.task
def wait_in_thread(number: int, seconds: float) -> None:
    _record().start(number)
    time.sleep(seconds)


@app.task(isolate="process")
def wait_in_process(number: int, seconds: float) -> None:
    _record().start(number)
    time.sleep(seconds)


@app.task
async def carry(number: int, seconds: float, data: str) -> None:
    _record().start(number)
    if seconds:
        await asyncio.sleep(seconds)


for number in range(int(os.environ.get("BENCH_TASKS", "0"))):
    app.task(f"one.of.many.{number}")(silent.function)


def jobs_of(options: argparse.Namespace) -> Callable[[int], NewJob]:
    """How the nth job is made."""
    match options.kind:
        case "hot":
            return lambda n: NewJob(id=new_id(), task="silent", lane=HOT)
        case "lanes":
            # One of each lane in turn, as they come in practice.
            return lambda n: NewJob(id=new_id(), task="tick", lane=f"lane:{n % options.lanes}")
        case "foreign" | "later":
            delay = LATER if options.kind == "later" else 0.0
            return lambda n: NewJob(id=new_id(), task=f"of.another.program.{n % 5}", delay=delay)
        case "tick" | "lead":
            return lambda n: NewJob(id=new_id(), task=options.kind)
        case "carry":
            text = b',"seconds":%a,"data":"%b"}' % (options.seconds, b"x" * options.bytes)
            return lambda n: NewJob(id=new_id(), task="carry", args=b'{"number":%d' % n + text)
        case task:
            text = b',"seconds":%a}' % options.seconds
            return lambda n: NewJob(id=new_id(), task=task, args=b'{"number":%d' % n + text)


async def fill(options: argparse.Namespace) -> dict[str, float]:
    """Store jobs, and tell how fast that was."""
    make = jobs_of(options)
    batch = max(1, min(BATCH, 4_000_000 // (options.bytes + 1)))
    async with app:
        begin, processor = time.perf_counter(), time.process_time()
        stored: asyncio.Future[list[Inserted]] | None = None
        for first in range(0, options.count, batch):
            jobs = [make(n) for n in range(first, min(first + batch, options.count))]
            if stored is not None:
                await stored
            stored = asyncio.ensure_future(app.engine.insert(jobs))
            await asyncio.sleep(0)
        if stored is not None:
            await stored
        return {
            "rate": options.count / (time.perf_counter() - begin),
            "processor": time.process_time() - processor,
        }


async def feed(options: argparse.Namespace) -> None:
    """Keep `count` jobs waiting, for ever."""
    ticks = Ticks(os.environ["BENCH_RECORD"])
    stored = 0
    async with app:
        while True:
            while stored - ticks.count < options.count:
                await app.engine.insert([NewJob(id=new_id(), task="tick") for _ in range(BATCH)])
                stored += BATCH
            await asyncio.sleep(0.005)


async def bare(options: argparse.Namespace) -> None:
    """The ideal: as many loops as there are slots, each of which only does the work."""
    numbers = iter(range(options.count))

    async def slot() -> None:
        for number in numbers:
            _record().start(number)
            await asyncio.sleep(options.seconds)

    await asyncio.gather(*(slot() for _ in range(options.slots)))


def bare_threads(options: argparse.Namespace) -> None:
    """The same for handlers that are plain functions."""

    def slot(first: int) -> None:
        for number in range(first, options.count, options.slots):
            _record().start(number)
            time.sleep(options.seconds)

    with ThreadPoolExecutor(options.slots) as threads:
        list(threads.map(slot, range(options.slots)))


async def work() -> int:
    return await run_worker(headrace.JobOrchestrator(app))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["fill", "feed", "bare", "worker"])
    parser.add_argument("--kind", default="tick")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--bytes", type=int, default=0)
    options = parser.parse_args()
    match options.command:
        case "fill":
            print(json.dumps(asyncio.run(fill(options))), flush=True)
        case "feed":
            asyncio.run(feed(options))
        case "bare":
            asyncio.run(bare(options)) if options.kind == "wait" else bare_threads(options)
            print("{}", flush=True)
        case _:
            sys.exit(asyncio.run(work()))


if __name__ == "__main__":
    main()
