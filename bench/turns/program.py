"""What is measured of a version: jobs enqueued singly, many at once, and run. It imports `headrace`
from where PYTHONPATH says, and uses only what every version has.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable

import headrace
from bench.turns.processor_time import ProcessorTime, microseconds

WARM_UP = 50
LIMIT_SECONDS = 60.0

app = headrace.App(os.environ["BENCH_URL"], max_workers=10)
left = 0
all_ran = asyncio.Event()


@app.task
async def tick(number: int) -> None:
    global left  # noqa: PLW0603 - the cheapest way to count
    left -= 1
    if left == 0:
        all_ran.set()


async def measure(single: int, many: int, server: int | None) -> dict[str, dict[str, float]]:
    """Return what each step costs for a job, by step."""
    await app.open()
    # Connections, scripts, plans and caches are not what is measured, and a worker's neither.
    await one_by_one(WARM_UP)
    await all_at_once(WARM_UP)
    await drain(2 * WARM_UP)
    steps = {
        "enqueue single": await spent(one_by_one(single), single, server),
        "enqueue many": await spent(all_at_once(many), many, server),
        "drain": await spent(drain(single + many), single + many, server),
    }
    await app.close()
    return steps


async def spent(work: Awaitable[None], jobs: int, server: int | None) -> dict[str, float]:
    meter = ProcessorTime(server)
    await work
    here, there = meter.seconds()
    return microseconds({"here": here, "server": there}, jobs)


async def one_by_one(count: int) -> None:
    for number in range(count):
        await tick.enqueue(number)


async def all_at_once(count: int) -> None:
    await app.enqueue_many(tick.job(number) for number in range(count))


async def drain(count: int) -> None:
    global left  # noqa: PLW0603
    left = count
    all_ran.clear()
    orchestrator = headrace.JobOrchestrator(app)
    await orchestrator.start()
    await asyncio.wait_for(all_ran.wait(), LIMIT_SECONDS)
    await orchestrator.stop()


def main() -> None:
    """Measure once; the answer is one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--single", type=int, required=True)
    parser.add_argument("--many", type=int, required=True)
    parser.add_argument("--server", type=int)
    options = parser.parse_args()
    steps = asyncio.run(measure(options.single, options.many, options.server))
    print(json.dumps({"from": headrace.__file__, "steps": steps}), flush=True)


if __name__ == "__main__":
    main()
