"""Procrastinate on psycopg."""

from __future__ import annotations

import asyncio
import os

import procrastinate

from bench.program import Program, main, recorder

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=os.environ["BENCH_URL"]))


@app.task(name="touch")
async def touch(number: int) -> None:
    RECORD.start(number)


RECORD = recorder() if "BENCH_RECORD" in os.environ else None


class ProcrastinateProgram(Program):
    async def open(self) -> None:
        await app.open_async()

    async def close(self) -> None:
        await app.close_async()

    async def setup(self) -> None:
        await self.open()
        await app.schema_manager.apply_schema_async()
        await self.close()

    async def enqueue(self, number: int) -> None:
        await touch.defer_async(number=number)

    async def enqueue_many(self, numbers: range) -> None:
        for begin in range(0, len(numbers), 1_000):
            part = numbers[begin : begin + 1_000]
            await touch.batch_defer_async(*({"number": n} for n in part))

    def worker(self) -> None:
        async def work() -> None:
            async with app.open_async():
                await app.run_worker_async(concurrency=10)

        asyncio.run(work())


if __name__ == "__main__":
    main(ProcrastinateProgram)
