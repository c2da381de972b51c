"""arq on Redis, polled every 10 ms."""

from __future__ import annotations

import asyncio
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from bench.program import Program, main, recorder


class ArqProgram(Program):
    async def open(self) -> None:
        self.pool = await create_pool(RedisSettings.from_dsn(self.url))

    async def close(self) -> None:
        await self.pool.aclose()

    async def enqueue(self, number: int) -> None:
        await self.pool.enqueue_job("touch", number)

    async def enqueue_many(self, numbers: range) -> None:
        for begin in range(0, len(numbers), 100):
            await asyncio.gather(*(self.enqueue(n) for n in numbers[begin : begin + 100]))

    def worker(self) -> None:
        record = recorder()

        async def touch(context: dict[str, Any], number: int) -> None:
            record.start(number)

        asyncio.set_event_loop(asyncio.new_event_loop())
        Worker(
            functions=[func(touch, name="touch")],
            redis_settings=RedisSettings.from_dsn(self.url),
            poll_delay=0.01,
            max_jobs=100,
        ).run()


if __name__ == "__main__":
    main(ArqProgram)
