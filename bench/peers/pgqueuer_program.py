"""PgQueuer: `BENCH_BATCH` is its batch size; the cap on concurrency is left off."""

from __future__ import annotations

import asyncio
import os

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.program import Program, main, recorder


class PgQueuerProgram(Program):
    async def open(self) -> None:
        self.connection = await asyncpg.connect(self.url)
        self.queries = Queries(AsyncpgDriver(self.connection))

    async def close(self) -> None:
        await self.connection.close()

    async def setup(self) -> None:
        await self.open()
        await self.queries.install()
        await self.close()

    async def enqueue(self, number: int) -> None:
        await self.queries.enqueue("touch", str(number).encode())

    async def _hundred(self, count: int) -> int:
        # One connection does one thing at a time; its documentation uses a pool.
        async with asyncpg.create_pool(self.url, min_size=10, max_size=10) as pool:
            self.queries = Queries(AsyncpgPoolDriver(pool))
            return await super()._hundred(count)

    async def enqueue_many(self, numbers: range) -> None:
        for begin in range(0, len(numbers), 1_000):
            part = numbers[begin : begin + 1_000]
            await self.queries.enqueue(
                ["touch"] * len(part), [str(n).encode() for n in part], [0] * len(part)
            )

    def worker(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        connection = await asyncpg.connect(self.url)
        queuer = PgQueuer(AsyncpgDriver(connection))
        record = recorder()

        @queuer.entrypoint("touch")
        async def touch(job: Job) -> None:
            record.start(int(job.payload or b"0"))

        batch = int(os.environ.get("BENCH_BATCH", "0"))
        await (queuer.run(batch_size=batch) if batch else queuer.run())


if __name__ == "__main__":
    main(PgQueuerProgram)
