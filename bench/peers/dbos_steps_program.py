"""DBOS: workflows of many steps, as many at once as our worker has slots.

Its workflows are started in the process, without its queue: only the steps are measured. Both its
ways are tried, in threads and on an event loop; the caller takes the better one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS, DBOSConfig

SLOTS = 10
config: DBOSConfig = {
    "name": "bench",
    "system_database_url": os.environ["BENCH_URL"],
    "run_admin_server": False,
    "log_level": "ERROR",
}


@DBOS.step()
def step(number: int) -> int:
    return number


@DBOS.workflow()
def staged(stages: int) -> int:
    return sum([step(number) for number in range(stages)])


@DBOS.step()
async def async_step(number: int) -> int:
    return number


@DBOS.workflow()
async def async_staged(stages: int) -> int:
    return sum([await async_step(number) for number in range(stages)])


def in_threads(jobs: int, stages: int) -> float:
    with ThreadPoolExecutor(SLOTS) as threads:
        list(threads.map(staged, [1] * SLOTS))
        begin = time.perf_counter()
        list(threads.map(staged, [stages] * jobs))
        return jobs * stages / (time.perf_counter() - begin)


async def on_a_loop(jobs: int, stages: int) -> float:
    await asyncio.gather(*(async_staged(1) for _ in range(SLOTS)))
    waiting = iter(range(jobs))

    async def slot() -> None:
        for _ in waiting:
            await async_staged(stages)

    begin = time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(SLOTS)))
    return jobs * stages / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--stages", type=int, required=True)
    options = parser.parse_args()
    DBOS(config=config)
    DBOS.launch()
    rates = {
        "threads": in_threads(options.jobs, options.stages),
        "loop": asyncio.run(on_a_loop(options.jobs, options.stages)),
    }
    DBOS.destroy()
    print(json.dumps(rates), flush=True)


if __name__ == "__main__":
    main()
