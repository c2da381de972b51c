"""Taskiq on Redis streams (BENCH_KIND=stream) or lists, in one process."""

from __future__ import annotations

import asyncio
import os

from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker, RedisStreamBroker

from bench.program import Program, main, recorder

RECORD = recorder() if "BENCH_RECORD" in os.environ else None
url = os.environ["BENCH_URL"]
broker = (
    RedisStreamBroker(url, consumer_id="0")
    if os.environ.get("BENCH_KIND") == "stream"
    else ListQueueBroker(url)
)


@broker.task
async def touch(number: int) -> None:
    RECORD.start(number)


class TaskiqProgram(Program):
    async def open(self) -> None:
        await broker.startup()

    async def close(self) -> None:
        await broker.shutdown()

    async def enqueue(self, number: int) -> None:
        await touch.kiq(number)

    async def enqueue_many(self, numbers: range) -> None:
        for begin in range(0, len(numbers), 100):
            await asyncio.gather(*(self.enqueue(n) for n in numbers[begin : begin + 100]))

    def worker(self) -> None:
        asyncio.run(run_receiver_task(broker, run_startup=True))


if __name__ == "__main__":
    main(TaskiqProgram)
