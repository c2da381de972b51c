"""Headrace with jobs that have stages, children and waits. Each command answers with JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from typing import Any

import psutil  # type: ignore[import-untyped]

import headrace

SLOTS = 10
# Longer than what a pause of a worker leaves open.
LOOK_SECONDS = 0.01
FEW = 100

app = headrace.App(os.environ["BENCH_URL"], max_workers=SLOTS)


async def step(number: int) -> int:
    return number


@app.task(timeout=None)
async def staged(ctx: headrace.Context, stages: int) -> int:
    return sum([await ctx.stage("step", step, number, key=number) for number in range(stages)])


@app.task
async def child(number: int) -> int:
    return number


@app.task(timeout=None)
async def fan_out(ctx: headrace.Context, count: int) -> int:
    return sum(await ctx.gather([child.job(number) for number in range(count)], group="all"))


@app.task
async def patient(ctx: headrace.Context) -> None:
    await ctx.wait("never", timeout=86_400)


async def stages(options: argparse.Namespace) -> dict[str, float]:
    """How many stages a second one worker does, and what they cost the engine."""
    async with app:
        await app.enqueue_many(staged.job(options.stages) for _ in range(options.jobs))
        worker = headrace.JobOrchestrator(app)
        begin = time.perf_counter()
        await worker.run_until_idle()
        seconds = time.perf_counter() - begin
        count = options.jobs * options.stages
        return {"rate": count / seconds, "writes": worker.telemetry.notes / count}


async def children(options: argparse.Namespace) -> dict[str, float]:
    """How long a job with so many children takes, from its start to its result."""
    async with app:
        worker = headrace.JobOrchestrator(app)
        await worker.start()
        begin = time.perf_counter()
        job = await fan_out.enqueue(options.jobs)
        total = await app.result(job.id, timeout=600)
        seconds = time.perf_counter() - begin
        await worker.stop()
        if total != sum(range(options.jobs)):
            raise RuntimeError(f"{options.jobs} children came to {total}")
        return {"seconds": seconds}


async def waiting(options: argparse.Namespace) -> dict[str, Any]:
    """What a worker holds of so many jobs that wait for a day."""
    process = psutil.Process()
    async with app:
        worker = headrace.JobOrchestrator(app)
        await worker.start()
        # What a worker takes at all, it has taken by then.
        await _suspended(options.jobs // 2)
        before = process.memory_info().rss
        held = len(process.net_connections("tcp"))
        await _suspended(options.jobs)
        answer = {
            "megabytes": (process.memory_info().rss - before) / 1e6,
            "connections": len(process.net_connections("tcp")) - held,
            "busy": sum(each.running for each in await app.engine.queues()),
        }
        await worker.stop()
        return answer


async def _suspended(count: int) -> None:
    # A few at a time: what handing in takes is not what waiting takes.
    for _ in range(0, count, FEW):
        await app.enqueue_many(patient.job() for _ in range(FEW))
        # Nobody tells when nothing is left to do.
        while any(each.ready + each.running for each in await app.engine.queues()):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["stages", "children", "waiting"])
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--stages", type=int, default=0)
    options = parser.parse_args()
    commands = {"stages": stages, "children": children, "waiting": waiting}
    print(json.dumps(asyncio.run(commands[options.command](options))), flush=True)


if __name__ == "__main__":
    main()
