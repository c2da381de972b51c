"""The program of the scenario `rates`: jobs of many keys at a rate, and of a throttled one."""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import sys

import headrace
from bench.recorder import Ticks
from bench.scenarios.rates import KEYS, PER_SECOND
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.limits.rate import as_rate
from headrace.orchestrator.worker_program import run_worker

BATCH = 1_000
SLOTS = int(os.environ.get("BENCH_SLOTS", "10"))

app = headrace.App(os.environ.get("BENCH_URL"), max_workers=SLOTS)


@functools.cache
def _ticks() -> Ticks:
    return Ticks(os.environ["BENCH_RECORD"])


@app.task
async def tick() -> None:
    """A job of a key that may start."""
    _ticks().start()


@app.task
async def slow() -> None:
    """A job of the key that is throttled."""


def a_job(task: str, number: int) -> NewJob:
    """The lanes are as wide as that of a task with a rate."""
    if task == "slow":
        rate, lane = as_rate("1/h"), "slow"
    else:
        rate, lane = as_rate(f"{PER_SECOND}/s"), f"key{number % KEYS}"
    return NewJob(id=new_id(), task=task, lane=lane, width=10_000, hold=False, rate=rate)


async def fill(task: str, count: int) -> dict[str, int]:
    """Store jobs."""
    async with app:
        for first in range(0, count, BATCH):
            numbers = range(first, min(first + BATCH, count))
            await app.engine.insert([a_job(task, number) for number in numbers])
    return {"count": count}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["fill", "worker"])
    parser.add_argument("--task", default="tick")
    parser.add_argument("--count", type=int, default=0)
    options = parser.parse_args()
    if options.command == "fill":
        print(json.dumps(asyncio.run(fill(options.task, options.count))), flush=True)
    else:
        sys.exit(asyncio.run(run_worker(headrace.JobOrchestrator(app))))


if __name__ == "__main__":
    main()
