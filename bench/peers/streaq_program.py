"""streaQ on Redis."""

from __future__ import annotations

import os

from streaq import Worker

from bench.program import Program, main, recorder

RECORD = recorder() if "BENCH_RECORD" in os.environ else None
worker = Worker(redis_url=os.environ["BENCH_URL"])


@worker.task
async def touch(number: int) -> None:
    RECORD.start(number)


class StreaqProgram(Program):
    async def open(self) -> None:
        await worker.__aenter__()

    async def close(self) -> None:
        await worker.__aexit__(None, None, None)

    async def enqueue(self, number: int) -> None:
        await touch.enqueue(number)

    async def enqueue_many(self, numbers: range) -> None:
        for begin in range(0, len(numbers), 1_000):
            part = numbers[begin : begin + 1_000]
            await worker.enqueue_many([touch.enqueue(n) for n in part])

    def worker(self) -> None:
        worker.run_sync()


if __name__ == "__main__":
    main(StreaqProgram)
