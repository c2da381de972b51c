"""Headrace with its defaults: history, results, tokens, leases and lanes all in place."""

from __future__ import annotations

import asyncio
import os

import headrace
from bench.program import Program, main, recorder

app = headrace.App(
    os.environ.get("BENCH_URL"), max_workers=int(os.environ.get("BENCH_SLOTS", "10"))
)
_record = recorder() if "BENCH_RECORD" in os.environ else None


@app.task
async def touch(number: int) -> None:
    if _record is not None:
        _record.start(number)


class Headrace(Program):
    async def open(self) -> None:
        await app.open()

    async def close(self) -> None:
        await app.close()

    async def setup(self) -> None:
        await app.open()
        await app.close()

    async def enqueue(self, number: int) -> None:
        await touch.enqueue(number)

    async def enqueue_many(self, numbers: range) -> None:
        await app.enqueue_many(touch.job(number) for number in numbers)

    def worker(self) -> None:
        async def work() -> None:
            orchestrator = headrace.JobOrchestrator(app)
            await orchestrator.start()
            await asyncio.Event().wait()

        asyncio.run(work())


if __name__ == "__main__":
    main(Headrace)
