"""SAQ on Redis or PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Any

from saq import Queue, Worker

from bench.program import Program, main, recorder


class SaqProgram(Program):
    async def open(self) -> None:
        self.queue = Queue.from_url(self.url)
        await self.queue.connect()

    async def close(self) -> None:
        await self.queue.disconnect()

    async def setup(self) -> None:
        await self.open()
        await self.close()

    async def enqueue(self, number: int) -> None:
        await self.queue.enqueue("touch", number=number)

    async def enqueue_many(self, numbers: range) -> None:
        for begin in range(0, len(numbers), 100):
            await asyncio.gather(*(self.enqueue(n) for n in numbers[begin : begin + 100]))

    def worker(self) -> None:
        record = recorder()

        async def touch(context: Any, *, number: int) -> None:
            record.start(number)

        async def work() -> None:
            queue = Queue.from_url(self.url)
            await queue.connect()
            await Worker(queue, [("touch", touch)], concurrency=10).start()

        asyncio.run(work())


if __name__ == "__main__":
    main(SaqProgram)
